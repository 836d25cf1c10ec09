"""Ids that programs pass, checked before the database would refuse them in its own words."""

from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import EventId, JobId

_LARGEST = 2**63 - 1


def job(given: object) -> JobId:
    return JobId(number("job_id", given))


def event(given: object) -> EventId:
    return EventId(number("event_id", given))


def number(name: str, given: object) -> int:
    """Raises InvalidOption."""
    if not isinstance(given, int) or isinstance(given, bool):
        hint = "; pass its id" if hasattr(given, "id") else ""
        raise InvalidOption(name, f"must be a whole number, not {given!r:.80}{hint}")
    if abs(given) > _LARGEST:
        raise InvalidOption(name, f"must be at most {_LARGEST}")
    return given
