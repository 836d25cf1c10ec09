"""A PostgreSQL of our own, for whoever gives no database URL.

Every process that uses a data directory shares the one server in it. Who uses it is known
to the kernel alone, as file locks, so a killed process leaves nothing behind to clean up:

    data_dir/lock       held exclusively while someone starts or stops the server
    data_dir/users      held shared by every using process for as long as it lives
    data_dir/reaper     held exclusively by the program that stands in for users who were killed
    data_dir/postgres   the database; written elsewhere first and moved here when complete
    data_dir/socket     the only way in; whoever can open it can be superuser, so it is private
    data_dir/server.log

    acquire: lock ─▶ share users ─▶ join the server that answers, or start one ─▶ unlock
    watch:   the server is gone? lock ─▶ join the server that answers, or start one ─▶ unlock
    release: lock ─▶ users exclusively? yes: we were the last, stop the server ─▶ unlock
    reaper:  the same once a second, until nobody uses the server and it has stopped

The application logs in as the role `mainspring`, which owns the database and is no superuser.

PostgreSQL refuses to run as root. Root runs it as the owner of the database or of the data
directory, and a new one as the system user `mainspring`.
"""

from mainspring.db.embedded.accounts import SYSTEM_USER
from mainspring.db.embedded.folders import default_data_dir
from mainspring.db.embedded.postmasters import PORT
from mainspring.db.embedded.programs import MAJOR_VERSION
from mainspring.db.embedded.servers import DATABASE, SETTINGS
from mainspring.db.embedded.shares import EmbeddedServer, acquire, release, running

__all__ = [
    "DATABASE",
    "MAJOR_VERSION",
    "PORT",
    "SETTINGS",
    "SYSTEM_USER",
    "EmbeddedServer",
    "acquire",
    "default_data_dir",
    "release",
    "running",
]
