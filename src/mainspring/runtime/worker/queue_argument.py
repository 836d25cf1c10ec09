"""The third argument of a `worker(job_data, job_id, queue)` function."""

from typing import Any

from mainspring.runtime.worker.context import Context


class QueueArgument:
    """The queue as such workers know it: they report progress and enqueue through it."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def update_job(self, job_id: str, updates: dict[str, Any]) -> None:
        """Progress from `progress` (0 to 100, or a dict with current and total)."""
        progress = updates.get("progress", updates)
        if isinstance(progress, int | float):
            self._context.progress(progress, 100, updates.get("message"), data=updates)
        elif isinstance(progress, dict):
            self._context.progress(
                progress.get("current", 0),
                progress.get("total"),
                progress.get("message"),
                data=progress,
            )
        else:
            self._context.progress(0, None, str(progress), data=updates)

    def is_canceled(self, job_id: str) -> bool:
        return self._context.is_canceled

    def enqueue(self, job_type: str, job_data: dict[str, Any]) -> str:
        """Enqueue a follow-up by definition key; returns its id."""
        return str(self._context.enqueue(job_type, **job_data).id)
