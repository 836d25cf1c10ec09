"""The `job_queue` of a launcher.

A launcher that overrides `launch()` enqueues for itself. If that were a transaction of its own, a
crash between it and the slot would run the slot twice. So while a scheduler runs `launch()`, the
job is only written down here, under an id that was reserved for it; the scheduler stores it in the
transaction that claims the slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainspring.domain.errors import InputError, InvalidPayload
from mainspring.domain.types import JobId, TenantId

CREATOR = "system:scheduler:"
# What launchers say of their job; every job of a schedule is like that.
_MARKS: Mapping[str, str] = {
    "is_system_job": "True",
    "job_source": "'scheduled_task'",
    "created_by": f"'{CREATOR}' and the name of the launcher",
}


@dataclass(frozen=True, slots=True)
class AskedJob:
    """The job that a launcher wants for its slot."""

    job_id: JobId
    definition: str
    payload: dict[str, Any]


class LauncherQueue:
    """Everything the `Mainspring` of the scheduler has, and `enqueue` and `update_job` as
    launchers know them."""

    def __init__(
        self, app: Any, tenant_id: TenantId | None = None, reserved: JobId | None = None
    ) -> None:
        self._app, self._tenant_id, self._reserved = app, tenant_id, reserved
        self.asked: AskedJob | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._app, name)

    def enqueue(self, job_type: str, job_data: Any, **options: Any) -> str:
        """Enqueue by definition key; returns the id. In `launch()` of a scheduler, the job of its
        slot, which can be only one."""
        if not isinstance(job_data, dict):
            raise InvalidPayload(f"job_data is {type(job_data).__name__}, not a dict")
        if self._reserved is None:
            if self._tenant_id is not None:
                options.setdefault("tenant_id", self._tenant_id)
            return str(self._app.enqueue(job_type, job_data, **options).id)
        if self.asked is not None:
            raise InputError(
                "launch() enqueued two jobs, and a slot has one; enqueue the others in its handler"
            )
        if options:
            raise InputError(
                f"launch() cannot enqueue with {', '.join(options)}; set it on the schedule"
            )
        self.asked = AskedJob(self._reserved, job_type, job_data)
        return str(self._reserved)

    def update_job(self, job_id: object, updates: Mapping[str, Any]) -> None:
        """Accept that a job is marked as its schedule's, which it is in any case."""
        for name, value in updates.items():
            if name not in _MARKS:
                known = ", ".join(_MARKS)
                raise InputError(f"update_job: a launcher can set only {known}, not {name!r}")
            if not _is_true(name, value):
                raise InputError(
                    f"update_job: {name} of a scheduled job is {_MARKS[name]}, not {value!r}"
                )


def _is_true(name: str, value: object) -> bool:
    match name:
        case "is_system_job":
            return value is True
        case "job_source":
            return value == "scheduled_task"
        case _:
            return isinstance(value, str) and value.startswith(CREATOR)
