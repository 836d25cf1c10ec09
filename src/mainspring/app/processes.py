"""Long-running processes: list them with their last sign of life.

for process in app.processes.list(kind="scheduler"):
    print(process.name, "leads" if process.leads else "stands by", process.seen_at)
"""

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.filters import Several
from mainspring.domain.processes import Process, SystemStatus
from mainspring.services import processes as services

# Inside the class `list` is one of its methods.
Found = list[Process]


class Processes(Namespace):
    """The workers, schedulers and servers of a database: `app.processes`."""

    async def alist(self, *, kind: Several[str] = None) -> Found:
        """The processes, newest first; `kind` is one or several of "worker", "scheduler" and
        "server"."""
        return await services.list_processes(self._app.database, kind=kind)

    async def astatus(self) -> SystemStatus:
        """What all processes do together: who leads the scheduling, what has waited for longest,
        and the database."""
        return await services.read_status(self._app.database)

    list = blocking(alist)
    status = blocking(astatus)
