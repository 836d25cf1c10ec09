"""What a running job may use of the process that it runs in."""

from dataclasses import dataclass
from typing import Any, Protocol

from mainspring.db.pool import AsyncPool, SyncPool
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource, SyncSource


class Enqueuer(Protocol):
    """The app, as far as a handler needs it to enqueue follow-ups."""

    def enqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> Any: ...

    async def aenqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> Any: ...


class ExecutionEnvironment(Protocol):
    """Connections, a way to enqueue, and where progress goes; a child process has another than the
    worker."""

    @property
    def async_source(self) -> AsyncSource: ...

    @property
    def sync_source(self) -> SyncSource: ...

    @property
    def enqueuer(self) -> Enqueuer: ...

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """That of handlers in the worker's own process; the watchdog stores what is noted."""

    async_source: AsyncPool
    sync_source: SyncPool
    enqueuer: Enqueuer

    @classmethod
    def open(
        cls, url: str, enqueuer: Enqueuer, *, size: int, use_pooler: bool
    ) -> "WorkerEnvironment":
        """With two pools of so many connections each, which are made when needed."""
        return cls(
            AsyncPool(url, size=size, use_pooler=use_pooler),
            SyncPool(url, size=size, use_pooler=use_pooler),
            enqueuer,
        )

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None:
        job.progress = progress

    async def close(self) -> None:
        await self.async_source.close()
        self.sync_source.close()
