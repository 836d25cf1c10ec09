"""`mainspring up`: Start a server, a scheduler, a worker and, if needed, the database.

What it runs is imported only after it has noted that it is starting, so that commands that are run
meanwhile wait for it.
"""

from typing import Annotated

import typer

from mainspring.cli import last_up
from mainspring.cli.config_option import ConfigFile
from mainspring.cli.examples import example
from mainspring.cli.role_options import Concurrency, Expose, Host, Port
from mainspring.cli.settings_options import DatabaseUrl, DataDir, make_settings

app = typer.Typer()


@app.command(epilog=example("mainspring up --app jobs:app"))
def up(
    app_reference: Annotated[
        str | None, typer.Option("--app", help="Your app as module:name.")
    ] = None,
    concurrency: Concurrency = None,
    host: Host = None,
    port: Port = None,
    expose: Expose = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Start a server, a scheduler, a worker and, if needed, the database."""
    last_up.keep_starting(make_settings(database_url, data_dir))
    from mainspring.cli.roles import run_all

    flags = {"concurrency": concurrency, "host": host, "port": port}
    run_all(app_reference, database_url, data_dir, is_exposed=expose, **flags)
