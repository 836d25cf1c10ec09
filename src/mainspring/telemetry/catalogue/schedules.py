"""Events about schedules and schedulers."""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.telemetry.events import ERROR, INFO, WARNING, Event, event

TITLE = "Schedules"
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "scheduler_started": event(INFO, "leads", "The scheduler has started."),
        "scheduler_leads": event(INFO, "", "This scheduler looks first from now on."),
        "launchers_missing": event(
            WARNING,
            "count schedules launchers",
            "This scheduler does not know the launchers of these schedules, so their slots fail; "
            "start it with the `--app` that registers them.",
        ),
        "scheduler_stopped": event(INFO, "", "The scheduler has stopped."),
        "slots_fired": event(
            INFO,
            "tenant job_id definition schedule slot count jobs schedules job_ids slots",
            "Slots of schedules without a condition fired; those of a single schedule with its "
            "name and their instants.",
        ),
        "schedule_fired": event(
            INFO,
            "tenant job_id definition schedule slot count job_ids slots",
            "A schedule with a condition or a launcher fired; several slots if it caught up.",
        ),
        "schedule_skipped": event(
            INFO,
            "tenant definition schedule slot reason",
            "Its condition was not met, or an earlier run is still live.",
        ),
        "schedule_failed": event(
            WARNING,
            "tenant definition schedule slot retry error",
            "A slot failed: its condition, launcher, payload or definition; a launcher's error "
            "comes with its traceback.",
        ),
        "schedule_disabled": event(
            ERROR,
            "tenant definition schedule slot count schedules error",
            "A schedule was disabled after too many failures, or because its timing cannot be "
            "understood.",
        ),
        "check_failed": event(
            ERROR,
            "tenant definition schedule slot error",
            "A due schedule could not be checked; another look is taken.",
        ),
        "runs_timed_out": event(
            WARNING,
            "count job_ids schedules",
            "Runs went on for longer than the `run_timeout` of their schedules.",
        ),
        "schedules_synced": event(
            INFO,
            "created changed kept schedules",
            "The schedules that the code declares were stored.",
        ),
        "schedules_installed": event(
            INFO, "count schedules", "The default schedules were added to a new database."
        ),
    }
)
