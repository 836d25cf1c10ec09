"""The context of a handler that takes `ctx`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from psycopg import AsyncConnection, Connection

from mainspring import telemetry
from mainspring.db.blocking_sessions import ConnectionSession, at_once
from mainspring.domain.errors import InputError
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.flows import Parent
from mainspring.domain.jobs.model import Progress
from mainspring.domain.jobs.options import MAX_CHECKPOINT_BYTES, MAX_PROGRESS_BYTES, OwnCreator
from mainspring.domain.secrets.redaction import NO_SECRETS
from mainspring.domain.types import ExecutionMode, JobId, SlotTrigger, TenantId
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.environment import ExecutionEnvironment
from mainspring.runtime.worker.results import encode
from mainspring.runtime.worker.transactions import JobTransaction
from mainspring.store import attempts, flows


class JobCanceled(Exception):
    """Raised inside a handler that was asked to stop; let it through."""


@dataclass(frozen=True, slots=True)
class SlotInfo:
    """The slot of a schedule that made a job; `missed` counts the slots it makes up for."""

    schedule: str
    at: datetime
    trigger: SlotTrigger
    is_catch_up: bool
    missed: int


class Context:
    """The current attempt, for its handler."""

    __slots__ = ("_environment", "_is_stopped", "_job", "_log", "_mode")

    def __init__(
        self,
        job: ClaimedJob,
        environment: ExecutionEnvironment,
        mode: ExecutionMode,
        *,
        is_stopped: Callable[[], bool] | None = None,
    ) -> None:
        self._job, self._environment, self._mode = job, environment, mode
        self._is_stopped = is_stopped
        self._log: Any = None

    @property
    def job_id(self) -> JobId:
        return self._job.id

    @property
    def tenant_id(self) -> TenantId:
        return self._job.tenant_id

    @property
    def definition(self) -> str:
        return self._job.definition

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def attempt(self) -> int:
        """1 for the first execution."""
        return self._job.attempt

    @property
    def correlation_id(self) -> str | None:
        value: str | None = self._job.rare("correlation_id")
        return value

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._job.rare("tags") or ())

    @property
    def slot(self) -> SlotInfo | None:
        """The slot that made the job; None if no schedule did."""
        origin, at = self._job.rare("origin"), self._job.rare("slot_at")
        if origin is None or at is None:
            return None
        trigger = SlotTrigger(origin.get("trigger", SlotTrigger.SCHEDULER))
        return SlotInfo(
            schedule=origin["schedule"],
            at=datetime.fromisoformat(at).astimezone(UTC),
            trigger=trigger,
            is_catch_up=trigger is SlotTrigger.CATCH_UP,
            missed=origin.get("missed", 0),
        )

    @property
    def saved(self) -> Any:
        """What an earlier attempt passed to `checkpoint`; None if nothing."""
        return self._job.rare("checkpoint")

    @property
    def log(self) -> Any:
        """A logger that adds the job to every line."""
        if self._log is None:
            facts = self._job.log_facts()
            self._log = telemetry.logger_for(redactor=self._job.redactor, **facts)
        return self._log

    @property
    def is_canceled(self) -> bool:
        """Whether the handler was asked to stop: canceled, timed out, or the worker is stopping."""
        return self._job.stop is not None or (self._is_stopped is not None and self._is_stopped())

    def raise_if_canceled(self) -> None:
        """Raise JobCanceled if the handler was asked to stop; call it regularly in long blocking
        code."""
        if self.is_canceled:
            raise JobCanceled(self._job.stop_note or "the job was asked to stop")

    def progress(
        self,
        current: float,
        total: float | None = None,
        message: str | None = None,
        *,
        data: Any = None,
    ) -> None:
        """Report progress. Cheap: only the latest report is stored, about twice a second, and the
        last one with the end of the job."""
        _ensure_number("current", current)
        if total is not None:
            _ensure_number("total", total)
        facts = asdict(Progress(current, total, message, data))
        encoded = encode("progress", facts, self._job.redactor, limit=MAX_PROGRESS_BYTES)
        self._environment.note_progress(self._job, encoded)

    async def acheckpoint(
        self, data: Any, *, connection: AsyncConnection[Any] | None = None
    ) -> None:
        """Store the state that a later attempt resumes from; it is committed when this returns, or
        with the transaction of your psycopg connection."""
        encoded = _checkpoint(data)
        async with self._lent(connection) as chosen:
            has_lease = await attempts.save_checkpoint(chosen, self._job.report, encoded)
        if not has_lease:
            raise LeaseLost(self._job.id)

    def _lent(
        self, connection: AsyncConnection[Any] | None
    ) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        if connection is not None:
            return nullcontext(connection)
        return self._environment.async_calls.connection()

    def checkpoint(self, data: Any, *, connection: Connection[Any] | None = None) -> None:
        """Blocking version of `acheckpoint`."""
        if self._mode is ExecutionMode.ASYNC:
            raise InputError("in an async handler write `await ctx.acheckpoint(...)`")
        encoded = _checkpoint(data)
        source = self._environment.sync_calls
        with source.connection() if connection is None else nullcontext(connection) as chosen:
            session = ConnectionSession(chosen)
            has_lease = at_once(attempts.save_checkpoint(session, self._job.report, encoded))
        if not has_lease:
            raise LeaseLost(self._job.id)

    async def aparents(self) -> list[Parent]:
        """The jobs that this one came after, with their results; empty if it came after none."""
        async with self._environment.async_calls.connection() as connection:
            return await flows.parents_of(connection, self._job.id)

    def parents(self) -> list[Parent]:
        """Blocking version of `aparents`."""
        if self._mode is ExecutionMode.ASYNC:
            raise InputError("in an async handler write `await ctx.aparents()`")
        with self._environment.sync_calls.connection() as connection:
            return at_once(flows.parents_of(ConnectionSession(connection), self._job.id))

    def transaction(self) -> JobTransaction:
        """A connection whose writes commit together with the job's success, or not at all."""
        if self._job.transaction is None:
            is_async = self._mode is ExecutionMode.ASYNC
            self._job.transaction = JobTransaction(
                self._job.report,
                self._job.worker_id,
                async_source=self._environment.async_source if is_async else None,
                sync_source=None if is_async else self._environment.sync_source,
            )
        transaction: JobTransaction = self._job.transaction
        return transaction

    async def aenqueue(self, job: Any, /, **payload: Any) -> Any:
        """Enqueue a follow-up job, a job function or the key of a definition, for the same tenant;
        inside `transaction()` it commits with the job's success."""
        return await self._environment.enqueuer.aenqueue_followup(job, payload, **self._options())

    def enqueue(self, job: Any, /, **payload: Any) -> Any:
        """Blocking version of `aenqueue`."""
        if self._mode is ExecutionMode.ASYNC:
            raise InputError("in an async handler write `await ctx.aenqueue(...)`")
        return self._environment.enqueuer.enqueue_followup(job, payload, **self._options())

    def _options(self) -> dict[str, Any]:
        transaction = self._job.transaction
        return {
            "tenant_id": self._job.tenant_id,
            "correlation_id": self.correlation_id or str(self._job.id),
            "connection": transaction.connection if transaction is not None else None,
            "created_by": OwnCreator.of_job(self._job.id),
        }


def _ensure_number(name: str, value: object) -> None:
    # JSON has no infinity and no NaN; they would be stored as null.
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise InputError(f"progress: {name} must be a finite number, not {value!r}")


def _checkpoint(data: object) -> str:
    # Unredacted: the next attempt gets it as it is, and the views hide it.
    return encode("checkpoint", data, NO_SECRETS, limit=MAX_CHECKPOINT_BYTES).decode()
