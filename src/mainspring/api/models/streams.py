"""What streams tell."""

from mainspring.api.models.base import Answer
from mainspring.api.models.jobs import WatchedJobModel


class OutputModel(Answer):
    """Output of the latest attempt, as far as it is kept."""

    stdout_tail: str | None
    stderr_tail: str | None


class WatchedModel(Answer):
    """The data of an event in a job's stream."""

    job: WatchedJobModel
    output: OutputModel | None
