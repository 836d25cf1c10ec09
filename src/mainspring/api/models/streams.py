"""What streams tell."""

from mainspring.api.models.base import Answer
from mainspring.api.models.jobs import JobModel


class OutputModel(Answer):
    """What the newest attempt has printed, as far as it is kept."""

    stdout_tail: str | None
    stderr_tail: str | None


class WatchedModel(Answer):
    """What an event of a job's stream holds."""

    job: JobModel
    output: OutputModel | None
