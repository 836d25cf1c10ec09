"""The third argument of a `worker(job_data, job_id, queue)` function.

It speaks the words of such workers (`job_type`, `job_data`, `status`), and reaches only the job
that the worker runs.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from math import isfinite
from typing import Any

from mainspring.db.blocking_sessions import ConnectionSession, at_once
from mainspring.domain.errors import InputError, JobNotFound
from mainspring.domain.jobs.model import Job, Progress
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import JobSource
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import Context
from mainspring.runtime.worker.environment import ExecutionEnvironment
from mainspring.store import jobs

_FIELDS = ("progress", "message", "data", "checkpoint")
# What the outcome of the worker decides.
_OUTCOMES = frozenset({"status", "state", "result", "error"})


class QueueArgument:
    """The queue as such workers know it."""

    def __init__(
        self, job: ClaimedJob, context: Context, environment: ExecutionEnvironment
    ) -> None:
        self._job, self._context, self._environment = job, context, environment
        self._checkpoint = context.saved
        # None until it is needed: what an earlier attempt reported is in the database.
        self._progress: Progress | None = None

    def get_job(self, job_id: str) -> dict[str, Any]:
        """The job as a dict of JSON values; `checkpoint` is what an attempt saved last, None if
        nothing."""
        self._ensure_own("get_job", job_id)
        stored = self._stored()
        progress = self._progress or stored.progress
        return {
            "job_id": str(self._job.id),
            "job_type": self._job.definition,
            "job_data": self._job.payload(),
            "status": str(stored.state),
            "progress": None if progress is None else asdict(progress),
            "checkpoint": self._checkpoint,
            "attempt": self._job.attempt,
            "max_attempts": self._job.max_attempts,
            "error": stored.last_error,
            "tenant": self._job.tenant_id,
            "queue": self._job.queue,
            "priority": self._job.priority,
            "tags": list(stored.tags),
            "created_by": stored.created_by,
            "job_source": str(stored.source),
            "is_system_job": stored.source == JobSource.SCHEDULE,
            "created_at": _stamp(stored.created_at),
            "started_at": _stamp(stored.started_at),
        }

    def update_job(self, job_id: str, updates: Mapping[str, Any]) -> None:
        """Change what is named and nothing else.

        `progress` is a number from 0 to 100, or a dict with `current` and `total` or with
        `percent`, whose other values become `data`; `message` a text; `data` any JSON value. What
        is given as `checkpoint` is committed when this returns, and the next attempt finds it in
        `get_job`.
        """
        self._ensure_own("update_job", job_id)
        _ensure_fields(updates)
        progress = None
        if updates.keys() - {"checkpoint"}:
            progress = _updated(self._progress or self._stored().progress, updates)
        if "checkpoint" in updates:
            self._context.checkpoint(updates["checkpoint"])
            self._checkpoint = updates["checkpoint"]
        if progress is not None:
            self._context.progress(
                progress.current, progress.total, progress.message, data=progress.data
            )
            self._progress = progress

    def is_canceled(self, job_id: str) -> bool:
        self._ensure_own("is_canceled", job_id)
        return self._context.is_canceled

    def enqueue(self, job_type: str, job_data: dict[str, Any]) -> str:
        """Enqueue a follow-up by definition key; returns its id."""
        return str(self._context.enqueue(job_type, **job_data).id)

    def _stored(self) -> Job:
        with self._environment.sync_calls.connection() as connection:
            found = jobs.get(ConnectionSession(connection), self._job.tenant_id, self._job.id)
            stored = at_once(found)
        if stored is None:
            raise JobNotFound(self._job.id)
        return stored

    def _ensure_own(self, method: str, job_id: object) -> None:
        if str(job_id) != str(self._job.id):
            raise InputError(
                f"{method} of job {job_id}: a worker reaches only its own job, {self._job.id}; "
                "use app.jobs for others"
            )


def _ensure_fields(updates: object) -> None:
    if not isinstance(updates, Mapping):
        raise InputError(f"update_job: updates must be a dict, not {type(updates).__name__}")
    for name in updates:
        if name in _OUTCOMES:
            raise InputError(
                f"update_job: {name!r} cannot be set by a worker; return the result or raise an "
                "error"
            )
        if name not in _FIELDS:
            hint = did_you_mean(str(name), _FIELDS) or "; put values of your own under 'data'"
            raise InputError(f"update_job: unknown field {name!r}{hint}")


def _updated(before: Progress | None, updates: Mapping[str, Any]) -> Progress:
    after = before or Progress(0)
    if "progress" in updates:
        after = _read(after, updates["progress"], has_message="message" in updates)
    if "message" in updates:
        after = replace(after, message=_text(updates["message"]))
    return replace(after, data=updates["data"]) if "data" in updates else after


def _read(before: Progress, given: object, *, has_message: bool) -> Progress:
    """The progress as workers write it: a number of 100, or a dict, whose values that have no
    field of their own are kept as data. A stage is the message unless there is another."""
    if not isinstance(given, Mapping):
        return replace(before, current=_percent(given), total=100)
    after, own = before, dict(given)
    if "current" in own:
        total = own.pop("total", None)
        known = None if total is None else _number(total)
        after = replace(after, current=_number(own.pop("current")), total=known)
    elif "percent" in own:
        after = replace(after, current=_percent(own.pop("percent")), total=100)
    said = next((name for name in ("message", "stage") if name in own), None)
    if said is not None and not has_message:
        after = replace(after, message=_text(own.pop(said)))
    return replace(after, data=own) if own else after


def _percent(given: object) -> float:
    if isinstance(given, str):
        raise InputError(
            f"update_job: progress must be a number from 0 to 100 or a dict, not {given!r}; put a "
            "text under 'message'"
        )
    percent = _number(given)
    # As much more as a sum of shares may be.
    if not 0 <= round(percent, 6) <= 100:
        raise InputError(
            f"update_job: progress must be from 0 to 100, not {given!r}; for another scale, give a "
            "dict with 'current' and 'total'"
        )
    return percent


def _number(given: object) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (is_number and isinstance(given, int | float) and isfinite(given)):
        raise InputError(f"update_job: progress must be a finite number, not {given!r}")
    return given


def _text(given: object) -> str | None:
    if given is not None and not isinstance(given, str):
        raise InputError(f"update_job: message must be a string, not {given!r}")
    return given


def _stamp(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
