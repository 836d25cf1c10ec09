"""What a running job may use of the process that it runs in.

Handlers may keep the connections of `ctx.transaction()` for as long as they like, and call
`ctx.checkpoint()` and the like meanwhile. So these calls have pools of their own, from which nobody
keeps anything: a few connections serve any number of handlers, and no handler waits for another.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from mainspring.db.connect import for_own_statements, with_options
from mainspring.db.pool import AsyncPool, SyncPool
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource, SyncSource

_CALLS_POOL_SIZE = 4
# Nobody waits for ever for a transaction: its handler may need more time than the others have.
_WAIT_SECONDS = 60.0
# A handler that has locked its own job, by a checkpoint in its transaction, would wait for itself.
_CALLS_OPTIONS = "-c lock_timeout=10s"


class Enqueuer(Protocol):
    """The app, as far as a handler needs it to enqueue follow-ups."""

    def enqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> Any: ...

    async def aenqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> Any: ...


class ExecutionEnvironment(Protocol):
    """Connections, a way to enqueue, and where progress goes; a child process has another than the
    worker. The sources are for transactions, which may last; the calls for single statements."""

    @property
    def async_source(self) -> AsyncSource: ...

    @property
    def sync_source(self) -> SyncSource: ...

    @property
    def async_calls(self) -> AsyncSource: ...

    @property
    def sync_calls(self) -> SyncSource: ...

    @property
    def enqueuer(self) -> Enqueuer: ...

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """That of handlers in the worker's own process; the watchdog stores what is noted."""

    async_source: AsyncPool
    sync_source: SyncPool
    async_calls: AsyncPool
    sync_calls: SyncPool
    enqueuer: Enqueuer

    @classmethod
    def open(
        cls, url: str, enqueuer: Enqueuer, *, size: int, use_pooler: bool
    ) -> "WorkerEnvironment":
        """With two pools of so many connections each for transactions, and two small ones for
        calls; connections are made when needed."""
        calls_url = with_options(for_own_statements(url), _CALLS_OPTIONS)
        return cls(
            AsyncPool(url, size=size, use_pooler=use_pooler, wait_seconds=_WAIT_SECONDS),
            SyncPool(url, size=size, use_pooler=use_pooler, wait_seconds=_WAIT_SECONDS),
            AsyncPool(calls_url, size=_CALLS_POOL_SIZE, use_pooler=use_pooler),
            SyncPool(calls_url, size=_CALLS_POOL_SIZE, use_pooler=use_pooler),
            enqueuer,
        )

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None:
        job.progress = progress

    async def close(self) -> None:
        for pool in (self.async_source, self.async_calls):
            await pool.close()
        for blocking in (self.sync_source, self.sync_calls):
            blocking.close()
