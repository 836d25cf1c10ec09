"""The errors of attempts, as the statements that end them take them."""

from collections.abc import Sequence
from typing import Protocol

from mainspring.domain.jobs.error_keys import summarize_end
from mainspring.domain.types import AttemptStatus


class EndedAttempt(Protocol):
    """How an attempt ended without success."""

    @property
    def status(self) -> AttemptStatus: ...

    @property
    def error(self) -> str | None: ...


def error_params(reports: Sequence[EndedAttempt]) -> dict[str, list[bytes | None]]:
    """The key of each error, and each key once with a sample."""
    errors = [summarize_end(report.status, report.error) for report in reports]
    samples = dict(error for error in errors if error is not None)
    return {
        "error_keys": [error and error.key.encode() for error in errors],
        "known_keys": [key.encode() for key in samples],
        "samples": [sample.encode() for sample in samples.values()],
    }


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
