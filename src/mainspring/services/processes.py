"""Use cases of long-running processes: looking at them, and at what they do together."""

from mainspring.db.sessions import Session
from mainspring.domain.filters import Several, words
from mainspring.domain.processes import Process, ProcessKind, SystemStatus, leader_of
from mainspring.store import processes as store

_ALL = 1000


async def list_processes(
    session: Session,
    *,
    kind: Several[str] = None,
    before: int | None = None,
    limit: int = _ALL,
) -> list[Process]:
    """The processes that the caller may see, the newest first."""
    kinds = words("kind", kind, ProcessKind)
    return await store.list_processes(session, kinds=kinds, before=before, limit=limit)


async def read_status(session: Session) -> SystemStatus:
    """Reads a bounded number of rows, however many jobs and events wait."""
    schedulers = await list_processes(session, kind=ProcessKind.SCHEDULER)
    version, schema_number = await store.read_database(session)
    return SystemStatus(
        leader=leader_of(schedulers),
        oldest_event_at=await store.oldest_event(session),
        queues=await store.oldest_ready(session),
        database_version=version,
        schema_number=schema_number,
    )
