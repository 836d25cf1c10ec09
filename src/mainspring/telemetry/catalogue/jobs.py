"""Events about jobs."""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.telemetry.events import ERROR, INFO, JOB, WARNING, Event, event

TITLE = "Jobs"
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "job_started": event(INFO, JOB, "An attempt begins (`log_jobs = all`)."),
        "job_succeeded": event(
            INFO, f"{JOB} seconds", "The handler has succeeded (`log_jobs = all`)."
        ),
        "attempt_failed": event(
            WARNING,
            f"{JOB} retry_in_seconds error",
            "The handler failed, and the job will be retried (unless `log_jobs = none`).",
        ),
        "job_ended": event(
            INFO,
            f"{JOB} state error",
            "The job has ended without success: failed for good, or canceled (unless "
            "`log_jobs = none`).",
        ),
        "job_dead": event(
            ERROR,
            f"{JOB} state error",
            "The job is in `dead_letter`: its attempts are used up (unless `log_jobs = none`).",
        ),
        "job_lost": event(
            ERROR,
            f"{JOB} state error",
            "A job that runs at most once was lost with its worker, and is not run again.",
        ),
        "job_parked": event(
            ERROR, f"{JOB} state error", "The job has killed its own process too often."
        ),
        "suspect_died": event(
            WARNING,
            f"{JOB} retry_in_seconds error",
            "The own process of a job whose worker had died has died too.",
        ),
        "suspect_unreachable": event(
            WARNING,
            f"{JOB} error",
            "Such a job could not have a process of its own, and runs alone in the worker.",
        ),
        "handler_abandoned": event(
            WARNING,
            f"{JOB} note",
            "A handler could not be stopped; the worker goes on, or exits, without it.",
        ),
        "handler_unknown": event(
            WARNING,
            "worker count job_ids definitions",
            "This worker has no handler for these jobs; they wait for one that has.",
        ),
        "definition_unreadable": event(
            ERROR,
            f"{JOB} error",
            "The definition of a job could not be read; the job is tried again in five minutes.",
        ),
        "job_recovered": event(
            WARNING, "count job_ids workers", "Jobs were recovered from dead workers."
        ),
        "late_report_refused": event(
            WARNING,
            f"{JOB} count job_ids",
            "Reports under an expired lease were refused, and recorded as late.",
        ),
        "lost_claims_returned": event(
            INFO,
            "worker count job_ids queues",
            "Jobs were returned because the response to their claim was lost.",
        ),
        "report_refused": event(
            ERROR,
            f"{JOB} error",
            "The database refused to store how a job ended, because of the job's own data, a "
            "constraint or a trigger. The job is failed, or queued again after five minutes if "
            "that is refused too, and the error is its `last_error`. If its row is locked, the "
            "report is sent again later.",
        ),
        "progress_refused": event(
            ERROR, f"{JOB} error", "The database refused to store the progress of a job."
        ),
        "output_refused": event(
            ERROR, f"{JOB} error", "The database refused to store the output of a job."
        ),
        "row_set_aside": event(
            ERROR,
            f"{JOB} duty tries seconds error",
            "A job could not be claimed, promoted, released, recovered, expired, settled or "
            "pruned; the others go on, and it is tried again after a growing time.",
        ),
        "limit_key_set_aside": event(
            ERROR,
            "tenant limit key seconds error",
            "The jobs of a limit key could not be claimed; other keys go on.",
        ),
    }
)
