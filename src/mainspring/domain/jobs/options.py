"""What an enqueue may ask for beyond its definition and payload, and the checks of each option."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from mainspring.domain.errors import InvalidOption, InvalidPayload
from mainspring.domain.jobs.backoff import ensure_delay
from mainspring.domain.types import DEFAULT_TENANT, Delivery, JobId, JobSource, TenantId

PRIORITIES = range(1001)
ATTEMPTS = range(1, 1001)
APPROVALS = range(101)
MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 1024 * 1024
MAX_CHECKPOINT_BYTES = 1024 * 1024
MAX_PROGRESS_BYTES = 64 * 1024
MAX_KEY_LENGTH = 500
MAX_TEXT_LENGTH = 10_000
"""Of a description, a reason, or a statement of a condition."""
MAX_TAGS = 50
MAX_PARENTS = 10_000
MAX_JOBS = 1_000_000
"""That one call enqueues."""

_OWN_CREATORS = ("system:", "trigger:", "job:")
_OWN_SOURCES = (JobSource.SCHEDULE, JobSource.TRIGGER, JobSource.JOB, JobSource.SYSTEM)
_SOURCE = re.compile(r"[a-z][a-z0-9_.-]{0,49}")

OnDuplicate = Literal["raise", "existing"]
DedupeBy = Literal["content"]
OnParentFailure = Literal["cancel", "continue", "wait"]


@dataclass(frozen=True, slots=True)
class EnqueueOptions:
    """Options of an enqueue besides definition and payload; None means the definition's own."""

    tenant_id: TenantId = DEFAULT_TENANT
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    scheduled_for: datetime | None = None
    delay: timedelta | None = None
    deadline: datetime | None = None
    dedupe_key: str | None = None
    dedupe_by: DedupeBy | None = None
    dedupe_window: timedelta | None = None
    idempotency_key: str | None = None
    on_duplicate: OnDuplicate = "raise"
    correlation_id: str | None = None
    tags: tuple[str, ...] = field(default=())
    limit_key: str | None = None
    approvals_needed: int | None = None
    after: tuple[JobId, ...] = ()
    on_parent_failure: OnParentFailure = "cancel"
    created_by: str | None = None
    source: str | None = None
    delivery: Delivery | None = None

    def __post_init__(self) -> None:
        _check_times(self)
        _check_keys(self)
        if self.priority is not None:
            ensure_priority(self.priority)
        if self.queue is not None:
            ensure_queue(self.queue)
        if self.max_attempts is not None and (
            self.max_attempts not in ATTEMPTS or isinstance(self.max_attempts, bool)
        ):
            raise InvalidOption("max_attempts", f"must be from 1 to 1000, not {self.max_attempts}")
        ensure_tags(self.tags)
        if self.approvals_needed is not None:
            ensure_approvals("approvals_needed", self.approvals_needed)
        if len(self.after) > MAX_PARENTS:
            raise InvalidOption(
                "after", f"must have at most {MAX_PARENTS:,} entries, not {len(self.after):,}"
            )
        ensure_on_failure(self.on_parent_failure)
        if self.created_by is not None:
            ensure_creator(self.created_by)
        if self.source is not None:
            ensure_source(self.source)
        ensure_delivery(self.delivery, self.max_attempts)


class EnqueueFields(TypedDict, total=False):
    """The same as keyword arguments; `after` may hold handles of jobs."""

    tenant_id: str | None
    queue: str | None
    priority: int | None
    max_attempts: int | None
    scheduled_for: datetime | None
    delay: timedelta | None
    deadline: datetime | None
    dedupe_key: str | None
    dedupe_by: DedupeBy | None
    dedupe_window: timedelta | None
    idempotency_key: str | None
    on_duplicate: OnDuplicate
    correlation_id: str | None
    tags: Sequence[str]
    limit_key: str | None
    approvals_needed: int | None
    after: Sequence[Any]
    on_parent_failure: OnParentFailure
    created_by: str | None
    source: str | None
    delivery: Delivery | Literal["at_least_once", "at_most_once"] | None


def ensure_priority(priority: int) -> None:
    if not isinstance(priority, int) or isinstance(priority, bool) or priority not in PRIORITIES:
        raise InvalidOption(
            "priority",
            f"must be a whole number from {PRIORITIES[0]} (first) to {PRIORITIES[-1]} (last), "
            f"not {priority!r}",
        )


def ensure_approvals(option: str, count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count not in APPROVALS:
        raise InvalidOption(
            option, f"must be a whole number from 0 to {APPROVALS[-1]}, not {count!r}"
        )


def ensure_on_failure(choice: str) -> None:
    if choice not in ("cancel", "continue", "wait"):
        raise InvalidOption(
            "on_parent_failure", f"must be 'cancel', 'continue' or 'wait', not {choice!r}"
        )


class OwnCreator(str):
    """Who Mainspring itself says a job was created by, in words that nobody else may use."""

    __slots__ = ()

    @classmethod
    def of_job(cls, job_id: JobId) -> "OwnCreator":
        """That of a follow-up, which the job enqueued while it ran."""
        return cls(f"job:{job_id}")


def ensure_creator(creator: str) -> None:
    ensure_text("created_by", creator)
    if creator.startswith(_OWN_CREATORS) and not isinstance(creator, OwnCreator):
        raise InvalidOption(
            "created_by", f"must not start with {_listed(_OWN_CREATORS)}, which Mainspring uses"
        )


def ensure_source(source: str) -> None:
    ensure_text("source", source)
    if not _SOURCE.fullmatch(source) or source in _OWN_SOURCES:
        raise InvalidOption(
            "source",
            f"must be 1 to 50 lower-case letters, digits and _ . -, and not "
            f"{_listed(_OWN_SOURCES)}, which Mainspring uses",
        )


def ensure_delivery(delivery: str | None, max_attempts: int | None) -> None:
    """Refuse a delivery that there is not, and several attempts of what runs at most once."""
    if delivery is not None and delivery not in tuple(Delivery):
        raise InvalidOption("delivery", f"must be {' or '.join(Delivery)}, not {delivery!r}")
    if delivery == Delivery.AT_MOST_ONCE and max_attempts not in (None, 1):
        raise InvalidOption(
            "max_attempts", f"must be 1 with delivery {delivery}, not {max_attempts}"
        )


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def ensure_queue(queue: str) -> None:
    ensure_text("queue", queue)
    if "," in queue or queue != queue.strip():
        raise InvalidOption(
            "queue", f"must not contain a comma, or start or end with a space: {queue!r}"
        )


def ensure_tags(tags: Sequence[str]) -> None:
    if len(tags) > MAX_TAGS:
        raise InvalidOption("tags", f"must have at most {MAX_TAGS} entries, not {len(tags)}")
    for tag in tags:
        ensure_text("tags", tag)


def ensure_reason(reason: str) -> None:
    """It may be empty."""
    if reason:
        ensure_text("reason", reason, longest=MAX_TEXT_LENGTH)


def ensure_text(option: str, value: str, *, longest: int = MAX_KEY_LENGTH) -> None:
    """Refuse what PostgreSQL cannot store or an index cannot hold."""
    if not isinstance(value, str):
        raise InvalidOption(option, f"must be a string, not {type(value).__name__}")
    if not value:
        raise InvalidOption(option, "must not be empty")
    if len(value) > longest:
        raise InvalidOption(option, f"must be at most {longest} characters")
    if "\x00" in value:
        raise InvalidOption(option, "must not contain a NUL byte")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidOption(option, "must be Unicode text, without lone surrogates")


def ensure_payload(payload: object) -> None:
    """Refuse a payload that is not a JSON object; what its values may be, the encoder says."""
    if not isinstance(payload, dict):
        raise InvalidPayload(
            f'the payload must be a JSON object such as {{"user_id": 7}}, '
            f"not {type(payload).__name__}"
        )


def holds_nul(value: object) -> bool:
    """Whether any text holds a NUL; the encoded form alone cannot tell it from a backslash."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(holds_nul(key) or holds_nul(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(holds_nul(item) for item in value)
    return False


def _check_times(options: EnqueueOptions) -> None:
    if options.delay is not None and options.scheduled_for is not None:
        raise InvalidOption("delay", "and scheduled_for cannot be used together; choose one")
    if options.delay is not None:
        ensure_delay("delay", options.delay)
    for name in ("scheduled_for", "deadline"):
        ensure_instant(name, getattr(options, name))
    if options.deadline and options.scheduled_for and options.scheduled_for >= options.deadline:
        raise InvalidOption("scheduled_for", "is not before the deadline; the job could never run")
    if options.dedupe_window is not None:
        ensure_delay("dedupe_window", options.dedupe_window)
        if not options.dedupe_window:
            raise InvalidOption("dedupe_window", "must be more than zero")


def ensure_instant(option: str, instant: datetime | None) -> None:
    if instant is None:
        return
    if not isinstance(instant, datetime):
        raise InvalidOption(option, f"must be a datetime, not {type(instant).__name__}")
    if instant.tzinfo is None:
        raise InvalidOption(option, "must have a time zone, such as datetime.now(UTC)")


def _check_keys(options: EnqueueOptions) -> None:
    for name in ("dedupe_key", "idempotency_key", "correlation_id", "tenant_id", "limit_key"):
        value = getattr(options, name)
        if value is not None:
            ensure_text(name, value)
    if options.dedupe_key is not None and options.dedupe_by is not None:
        raise InvalidOption("dedupe_by", "and dedupe_key cannot be used together; choose one")
    if options.dedupe_by not in (None, "content"):
        raise InvalidOption("dedupe_by", f"must be 'content', not {options.dedupe_by!r}")
    if options.on_duplicate not in ("raise", "existing"):
        raise InvalidOption(
            "on_duplicate", f"must be 'raise' or 'existing', not {options.on_duplicate!r}"
        )
    if options.dedupe_window and not (options.dedupe_key or options.dedupe_by):
        raise InvalidOption("dedupe_window", "needs dedupe_key or dedupe_by='content'")
