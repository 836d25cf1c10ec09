"""A job a worker holds a lease on, from claim to report."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import orjson

from mainspring import telemetry
from mainspring.domain.jobs.outcomes import StopReason
from mainspring.domain.limits import LimitKey
from mainspring.domain.secrets.redaction import NO_SECRETS
from mainspring.domain.types import Fence, JobId, TenantId, WorkerId
from mainspring.store.attempts import Report


class ClaimedJob:
    """Made for every job, so it has slots and does nothing before it has to."""

    __slots__ = (
        "attempt",
        "began_at",
        "claimed_at",
        "definition",
        "expires_at",
        "extras",
        "failures",
        "fence",
        "forced_at",
        "handler",
        "id",
        "interrupt",
        "is_speculative",
        "limit_key",
        "limit_name",
        "losses",
        "max_attempts",
        "output",
        "payload_text",
        "priority",
        "progress",
        "queue",
        "redactor",
        "stop",
        "stop_note",
        "stored_progress",
        "task",
        "tenant_id",
        "transaction",
        "version",
        "virtual_start",
        "worker_id",
    )

    id: JobId
    fence: Fence
    definition: str
    payload_text: str
    attempt: int
    failures: int
    losses: int
    max_attempts: int
    queue: str
    priority: int
    tenant_id: TenantId
    extras: str | None
    limit_name: str | None
    limit_key: str | None
    version: int

    def __init__(self, row: tuple[Any, ...], worker_id: WorkerId, claimed_at: float) -> None:
        (
            self.id,
            self.fence,
            self.definition,
            self.payload_text,
            self.attempt,
            self.failures,
            self.losses,
            self.max_attempts,
            self.queue,
            self.priority,
            self.tenant_id,
            self.extras,
            self.limit_name,
            self.limit_key,
            self.version,
        ) = row
        self.worker_id = worker_id
        self.claimed_at = claimed_at
        self.is_speculative = False  # Whether its claim may still come to nothing.
        self.began_at = 0.0
        self.expires_at = 0.0
        self.forced_at = 0.0
        self.stop: StopReason | None = None
        self.stop_note = ""
        self.task: asyncio.Task[None] | None = None
        self.interrupt: Callable[[], None] | None = None
        self.progress: bytes | None = None
        self.stored_progress: bytes | None = None
        self.handler: Any = None
        self.output: Any = None
        self.transaction: Any = None
        self.redactor = NO_SECRETS
        self.virtual_start = 0.0  # Known only of jobs that wait beside those of other tenants.

    def row(self) -> tuple[Any, ...]:
        """What it was made of, as far as that has not changed since: secrets are decrypted."""
        return (
            self.id,
            self.fence,
            self.definition,
            self.payload_text,
            self.attempt,
            self.failures,
            self.losses,
            self.max_attempts,
            self.queue,
            self.priority,
            self.tenant_id,
            self.extras,
            self.limit_name,
            self.limit_key,
            self.version,
        )

    @property
    def report(self) -> Report:
        return Report(self.id, self.fence)

    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = orjson.loads(self.payload_text)
        return loaded

    def rare(self, name: str) -> Any:
        """A field that few jobs have; None for those that have not."""
        return orjson.loads(self.extras).get(name) if self.extras else None

    @property
    def is_suspect(self) -> bool:
        """Whether it lost the process that ran it before."""
        return self.extras is not None and bool(self.rare("is_suspect"))

    @property
    def unstored_progress(self) -> bytes | None:
        """What was reported last, unless it is stored."""
        return None if self.progress is self.stored_progress else self.progress

    @property
    def runs_once(self) -> bool:
        """Whether it is not to run again once it has begun."""
        return self.extras is not None and bool(self.rare("runs_once"))

    def limit_place(self) -> LimitKey | None:
        """Where it has a place of a limit; None if nothing limits it."""
        name = self.limit_name
        return None if name is None else LimitKey(name, self.limit_key or "", self.tenant_id)

    def shown(self, text: str) -> str:
        """An error or a reason as people may see it."""
        return self.redactor.tail(text)

    def timings(self) -> tuple[int, int]:
        """Microseconds from claim to begin, and from begin to now."""
        began = self.began_at or time.monotonic()
        waited = int((began - self.claimed_at) * 1e6)
        return max(waited, 0), int((time.monotonic() - began) * 1e6)

    def log_facts(self) -> dict[str, Any]:
        """What every log line about the job names."""
        facts: dict[str, Any] = {
            "tenant": self.tenant_id,
            "job_id": self.id,
            "definition": self.definition,
            "queue": self.queue,
            "attempt": self.attempt,
            "worker": self.worker_id,
        }
        if self.extras is not None and (origin := self.rare("origin")) is not None:
            facts |= {"schedule": origin.get("schedule"), "slot": self.rare("slot_at")}
        return facts

    def log_event(self, event: str, **facts: Any) -> None:
        telemetry.event(event, **self.log_facts(), **facts)
