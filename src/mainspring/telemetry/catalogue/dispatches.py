"""Events about events and triggers."""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.telemetry.events import ERROR, INFO, WARNING, Event, event

TITLE = "Events and triggers"
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "events_dispatched": event(
            INFO,
            "tenants count event_ids jobs job_ids failed",
            "Events were given to their triggers.",
        ),
        "trigger_failed": event(
            WARNING, "tenant event_id trigger error", "A trigger failed for an event."
        ),
        "event_failed": event(
            ERROR,
            "tenant event_id error",
            "What the triggers of an event made could not be stored; the event is handled.",
        ),
    }
)
