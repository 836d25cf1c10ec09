"""Errors about queues; the tree is drawn in `errors`."""

from mainspring.domain.errors import NotFoundError
from mainspring.domain.errors.hints import hint


class QueueNotPaused(NotFoundError):
    """The queue is not paused, so it cannot be resumed."""

    code = "queue_not_paused"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"queue {name!r} is not paused{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion
