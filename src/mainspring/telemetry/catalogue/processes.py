"""Events about processes, connections and background tasks."""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.telemetry.events import DEBUG, ERROR, INFO, JOB, WARNING, Event, event

TITLE = "Processes"
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "worker_started": event(INFO, "worker name queues", "The worker has started."),
        "worker_stopping": event(
            INFO,
            "worker count job_ids drain_seconds",
            "The worker claims no more jobs and waits for those that run.",
        ),
        "worker_stopped": event(INFO, "worker", "The worker has stopped."),
        "worker_stalled": event(
            WARNING,
            f"{JOB} hangs seconds handed_back",
            "Nothing moves: the event loop is blocked, with the job that does it if known, or "
            "a connection gets no answer.",
        ),
        "lease_lost": event(
            ERROR,
            "worker count job_ids",
            "The worker did not renew its lease in time; its jobs run elsewhere, and it goes "
            "on under a new id.",
        ),
        "process_died": event(
            WARNING, "pid exit_code", "The supervisor restarts a worker process that died."
        ),
        "reloading": event(INFO, "", "Python files have changed (`--reload`)."),
        "supervisor_gone": event(
            WARNING, "", "The process that started this one is gone; it stops as on SIGTERM."
        ),
        "database_lost": event(
            WARNING,
            "connection error",
            "The database cannot be reached, or ended a connection; the process goes on "
            "trying. There is one such event per outage and process.",
        ),
        "database_back": event(INFO, "connection seconds", "The database answers again."),
        "connection_replaced": event(
            DEBUG,
            "connection error",
            "A connection from before the end of an outage was found broken and replaced.",
        ),
        "statement_retried": event(
            WARNING,
            "connection error",
            "The database answers, but refuses for a reason that passes, such as a full disk.",
        ),
        "embedded_server_lost": event(
            WARNING, "data_dir pid", "The embedded server stopped while in use."
        ),
        "embedded_server_back": event(
            INFO, "data_dir pid", "The embedded server is running again."
        ),
        "embedded_server_failed": event(
            ERROR, "error", "The embedded server could not be restarted; it is retried."
        ),
        "loop_failed": event(
            ERROR,
            "loop error",
            "A background task failed and is tried again; please report it.",
        ),
        "loop_back": event(INFO, "loop seconds", "A background task that failed works again."),
        "notification_ignored": event(
            WARNING,
            "payload error",
            "Someone sent a message on our notification channel that means nothing to us; the "
            "first one is logged, all are ignored.",
        ),
        "cleanup_failed": event(
            WARNING,
            "duty error",
            "One task of cleaning up failed or took too long; it is tried again in 15 minutes.",
        ),
        "index_rebuilt": event(
            INFO,
            "index bytes entries",
            "An index was many times its content and was rebuilt while in use.",
        ),
        "setting_unknown": event(
            WARNING, "problem", "An environment variable looks like a setting and is none."
        ),
    }
)
