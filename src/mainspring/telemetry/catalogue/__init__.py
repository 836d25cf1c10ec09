"""Every event that is logged: its level, what it says, and its fields.

`docs/reference/events.md` is printed from this table (`make events`), and
`tests/contract/test_log_events.py` compares it with the code.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mainspring.telemetry.catalogue import dispatches, jobs, processes, schedules, server
from mainspring.telemetry.events import EVERYWHERE, INFO, Event

GROUPS: Mapping[str, Mapping[str, Event]] = MappingProxyType(
    {group.TITLE: group.EVENTS for group in (jobs, processes, schedules, dispatches, server)}
)
EVENTS: Mapping[str, Event] = MappingProxyType(
    {name: event for group in GROUPS.values() for name, event in group.items()}
)


def level_of(name: str) -> int:
    event = EVENTS.get(name)
    return INFO if event is None else event.level


def ensure_known(name: str, facts: Mapping[str, Any]) -> None:
    """Raise LookupError for an event or a field that is not in the table."""
    if name not in EVENTS:
        raise LookupError(f"{name!r} is not in telemetry/catalogue/; add it, with its fields")
    unknown = facts.keys() - {*EVENTS[name].fields, *EVERYWHERE}
    if unknown:
        raise LookupError(f"event {name!r} has no fields {sorted(unknown)} in telemetry/catalogue/")
