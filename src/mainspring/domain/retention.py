"""Retention: how long finished jobs, audit entries, slots and events are kept.

Of the policies that name a record's tenant or none, the one of the tenant applies; of jobs the most
specific one, as in `sql/queries/history.sql`, and a definition's own retention before all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

from mainspring.domain.errors import InvalidOption
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import LONGEST_DELAY, JobState

DAY: Final = timedelta(days=1)
STATES: Final = (JobState.SUCCEEDED, JobState.FAILED, JobState.DEAD_LETTER, JobState.CANCELED)


class RetentionKind(StrEnum):
    """What a retention policy is about."""

    JOBS = "jobs"
    AUDIT = "audit"
    SLOTS = "slots"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long something is kept: of a tenant or, without one, of everyone; of jobs in a state, or
    in all. A default is that of a setting, and applies until a policy is saved."""

    kind: RetentionKind
    keep: timedelta
    tenant_id: str | None = None
    state: JobState | None = None
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class RetentionDay:
    """How many records of a day a pass removes, and how many of them it removes in any case: by the
    policies that are saved."""

    kind: RetentionKind
    day: date
    count: int
    already: int


@dataclass(frozen=True, slots=True)
class RetentionBounds:
    """How short and how long admins may have something kept."""

    least: timedelta
    most: timedelta


def ensure_kind(kind: object) -> RetentionKind:
    """A kind by its name."""
    try:
        return RetentionKind(str(kind))
    except ValueError:
        hint = did_you_mean(str(kind), RetentionKind)
        known = ", ".join(RetentionKind)
        raise InvalidOption("kind", f"must be one of {known}, not {kind!r}{hint}") from None


def ensure_state(kind: RetentionKind, state: object) -> JobState | None:
    """A state of finished jobs by its name; None is all of them."""
    if state is None:
        return None
    if kind is not RetentionKind.JOBS:
        raise InvalidOption("state", f"is for the kind jobs; {kind} have no state")
    if state not in STATES:
        hint = did_you_mean(str(state), STATES)
        known = ", ".join(STATES)
        raise InvalidOption("state", f"must be one of {known}, not {state!r}{hint}")
    return JobState(str(state))


def ensure_keep(kind: RetentionKind, keep: object) -> timedelta:
    least = timedelta(0) if kind is RetentionKind.JOBS else DAY
    if not isinstance(keep, timedelta) or not least <= keep <= LONGEST_DELAY:
        raise InvalidOption(
            "keep", f"must be from {least.days} to {LONGEST_DELAY.days} days for {kind}, not {keep}"
        )
    return keep


def ensure_within(bounds: RetentionBounds, keep: timedelta) -> None:
    """Refuse what only an operator may save."""
    if not bounds.least <= keep <= bounds.most:
        raise InvalidOption(
            "keep",
            f"must be from {_days(bounds.least)} to {_days(bounds.most)} days, not {_days(keep)}; "
            "an operator may go beyond that",
        )


def ensure_no_shorter(now: timedelta | None, keep: timedelta | None) -> None:
    """Refuse to shorten what shows what an admin has done; None is for ever."""
    if keep is not None and (now is None or keep < now):
        kept = "for ever" if now is None else f"for {_days(now)} days"
        raise InvalidOption(
            "keep", f"cannot be less than now: the audit is kept {kept}; ask an operator"
        )


def applying(
    policies: Iterable[RetentionPolicy], kind: RetentionKind, tenant_id: str | None
) -> timedelta | None:
    """How long records of a kind other than jobs are kept for a tenant; None is for ever."""
    known = {policy.tenant_id: policy.keep for policy in policies if policy.kind is kind}
    return known.get(tenant_id, known.get(None))


def _days(duration: timedelta) -> str:
    return f"{duration / DAY:g}"
