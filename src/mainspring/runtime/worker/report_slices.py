"""How many reports are sent at once."""

from collections.abc import Iterator
from typing import TypeVar

from mainspring.store.attempts import Ending, Successes

LARGEST_BATCH = 2000
_MOST_BYTES = 16 * 1024 * 1024

R = TypeVar("R", Successes, list[Ending])


def slices(reports: R) -> Iterator[R]:
    """Neither too many reports nor too many bytes at once."""
    sizes = _sizes(reports)
    if 0 < len(reports) <= LARGEST_BATCH and sum(sizes) <= _MOST_BYTES:
        yield reports
        return
    start = total = 0
    for place, size in enumerate(sizes):
        total += size
        if place > start and (total > _MOST_BYTES or place - start >= LARGEST_BATCH):
            yield reports[start:place]
            start, total = place, size
    if start < len(reports):
        yield reports[start:]


def _sizes(reports: Successes | list[Ending]) -> list[int]:
    """The bytes of each that may be many."""
    if not isinstance(reports, Successes):
        return [
            len(report.error) + len(report.progress or b"") + len(report.result or b"")
            for report in reports
        ]
    sizes = [0 if result is None else len(result) for result in reports.results]
    if known := reports.progress:
        for place, job_id in enumerate(reports.job_ids):
            sizes[place] += len(known.get(job_id, b""))
    return sizes
