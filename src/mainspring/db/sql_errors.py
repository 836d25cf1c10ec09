"""Errors raised by our SQL functions, turned into ours, whichever driver carried them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from mainspring.domain.errors import (
    ConflictError,
    DuplicateJob,
    DuplicateSchedule,
    EventNotFound,
    FlowNotFound,
    IdempotencyConflict,
    IllegalMove,
    InvalidDefinition,
    InvalidEvent,
    InvalidOption,
    InvalidPayload,
    InvalidSchedule,
    InvalidTrigger,
    JobNotFound,
    MainspringError,
    NotAnApprover,
    PayloadTooLarge,
    ScheduleNotFound,
    TenantNotFound,
    TriggerNotFound,
    UnknownDefinition,
)
from mainspring.domain.errors.access import AppRoleMissing, Unauthenticated
from mainspring.domain.errors.database import InsufficientRights, SchemaMissing
from mainspring.domain.errors.definitions import InactiveDefinition
from mainspring.domain.errors.slots import SlotClaimed
from mainspring.domain.types import EventId, JobId, JobState

Facts = Mapping[str, Any]

_OF_TENANTS = ("people", "schedules", "tokens", "triggers")


def _option(message: str, facts: Facts) -> InvalidOption:
    option = str(facts.get("option", "option"))
    return InvalidOption(option, facts.get("problem") or message.removeprefix(f"{option} "))


def _illegal_move(_: str, facts: Facts) -> IllegalMove:
    return IllegalMove(JobId(facts["job_id"]), JobState(facts["state"]), facts["target"])


def _unknown_definition(_: str, facts: Facts) -> UnknownDefinition:
    key = str(facts["key"])
    return InactiveDefinition(key) if facts.get("is_deactivated") else UnknownDefinition(key)


def _slot_claimed(_: str, facts: Facts) -> SlotClaimed:
    job_id = None if facts["job_id"] is None else JobId(facts["job_id"])
    return SlotClaimed(str(facts["name"]), datetime.fromisoformat(facts["slot_at"]), job_id)


def _invalid_definition(_: str, facts: Facts) -> InvalidDefinition:
    message = f"{facts['key']}: {facts['field']} {facts['problem']}"
    return InvalidDefinition(message, field=str(facts["field"]))


def _missing_tenant(message: str, _: Facts) -> InvalidOption:
    if not any(f"{table}_tenant_id_fkey" in message for table in _OF_TENANTS):
        raise ValueError(message)
    return InvalidOption("tenant", "does not exist")


def _no_rights(message: str, _: Facts) -> InsufficientRights:
    # Row-level security refuses with the same code.
    if not message.startswith("permission denied for"):
        raise ValueError(message)
    return InsufficientRights(message)


_BY_SQLSTATE: Mapping[str, Callable[[str, Facts], MainspringError]] = {
    "MS001": lambda message, _: InvalidPayload(message),
    "MS002": lambda _, facts: PayloadTooLarge(facts["size"], facts["limit"]),
    "MS003": _option,
    "MS010": _unknown_definition,
    "MS020": lambda _, facts: DuplicateJob(facts["key"], JobId(facts["job_id"])),
    "MS021": lambda _, facts: IdempotencyConflict(facts["key"], JobId(facts["job_id"])),
    "MS030": lambda _, facts: JobNotFound(JobId(facts["job_id"])),
    "MS031": _illegal_move,
    "MS032": lambda _, facts: NotAnApprover(
        JobId(facts["job_id"]), facts["actor"], facts["approvers"]
    ),
    "MS040": lambda _, facts: ScheduleNotFound(str(facts["name"])),
    "MS041": lambda _, facts: InvalidSchedule(facts["field"], facts["problem"]),
    "MS042": lambda _, facts: DuplicateSchedule(str(facts["name"])),
    "MS043": _slot_claimed,
    "MS050": _invalid_definition,
    "MS060": lambda _, facts: InvalidEvent(facts["field"], facts["problem"]),
    "MS061": lambda _, facts: InvalidTrigger(facts["field"], facts["problem"]),
    "MS062": lambda _, facts: EventNotFound(EventId(facts["event_id"])),
    "MS063": lambda message, _: ConflictError(message),
    "MS064": lambda _, facts: TriggerNotFound(str(facts["name"])),
    "MS070": lambda _, facts: FlowNotFound(facts["flow_id"]),
    "MS080": lambda message, _: Unauthenticated(message),
    "MS081": lambda _, facts: TenantNotFound(str(facts["tenant_id"])),
    "MS083": lambda message, _: AppRoleMissing(message),
    # PostgreSQL's own: a row that is referred to, a right that is missing, a \u0000 in a JSON
    # string, and a schema, view or function not there.
    "23503": _missing_tenant,
    "42501": _no_rights,
    "22P05": lambda *_: InvalidPayload(
        "the payload contains a NUL byte, which PostgreSQL cannot store"
    ),
    "3F000": lambda *_: SchemaMissing(),
    "42P01": lambda *_: SchemaMissing(),
    "42883": lambda *_: SchemaMissing(),
}


def translate(error: BaseException) -> MainspringError | None:
    """Our error for a driver's; None if it is none of ours."""
    source = _driver_error(error)
    build = _BY_SQLSTATE.get(_sqlstate(source) or "")
    if build is None:
        return None
    try:
        return build(_message(source), _facts(source))
    except (KeyError, ValueError):
        # The same code without the facts that ours come with: someone else's.
        return None


class _Translation:
    """Written out, because every enqueue pays for it."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, Exception) and (ours := translate(error)) is not None:
            raise ours from error


_TRANSLATION = _Translation()


def translated() -> AbstractContextManager[None]:
    """Raise our error in place of the driver's."""
    return _TRANSLATION


def _driver_error(error: BaseException) -> BaseException:
    """What the driver raised, below any wrapping by SQLAlchemy or Django."""
    return [error, *(link for link in _links(error) if _sqlstate(link))][-1]


def _links(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps; SQLAlchemy on asyncpg wraps twice."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__


def _sqlstate(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def _message(error: BaseException) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return primary or str(error).partition("\n")[0]


def _facts(error: BaseException) -> Facts:
    diagnostics = getattr(error, "diag", None)
    detail = getattr(diagnostics, "message_detail", None) or getattr(error, "detail", None)
    try:
        facts = json.loads(str(detail))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
