"""Reports: one alone leaves at once; while more jobs are at hand, the next wait for each other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.fair_share import FairShare
from mainspring.domain.jobs.outcomes import End, Requeue
from mainspring.domain.types import AttemptStatus, Fence, JobId, JobState, WorkerId
from mainspring.runtime.worker import reporter
from mainspring.runtime.worker.buffer import Buffer, by_lane
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.lease import Lease
from mainspring.runtime.worker.report_slices import slices
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.store.attempts import Ending, Successes
from tests.support.waiting import await_until


@pytest.fixture
async def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> ReconnectingConnection:
    """The reporter's connection; a batch that is held is held for as long as a test lasts."""
    monkeypatch.setattr(reporter, "_APART_SECONDS", 60.0)
    return ReconnectingConnection(database_url, name="reports")


class Batches(WorkerEvents):
    """How many reports each batch had."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def reports_sent(self, count: int) -> None:
        self.sent.append(count)


@asynccontextmanager
async def reporting(
    own: ReconnectingConnection, *, is_busy: bool, speculation: SpeculativeStarts | None = None
) -> AsyncIterator[tuple[Reporter, list[int]]]:
    """A reporter at work, and how many reports each of its batches had; a busy worker has another
    job in its buffer."""
    batches, buffer = Batches(), Buffer(FairShare())
    if is_busy:
        buffer.put(by_lane([job(0)]))
    reporter = Reporter(
        own, buffer=buffer, speculation=speculation or SpeculativeStarts(Lease(15)), events=batches
    )
    task = asyncio.create_task(reporter.run())
    try:
        yield reporter, batches.sent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await own.close()


def job(number: int) -> ClaimedJob:
    row = (number, 1, "a", "{}", 1, 0, 0, 3, "q", 100, "default", None, None, None, 1)
    return ClaimedJob(row, WorkerId(1), 0.0)


def succeed(reporter: Reporter, number: int) -> None:
    reporter.succeed(job(number), 0.0, None)


async def test_one_by_one_each_leaves_at_once(own):
    async with reporting(own, is_busy=False) as (reporter, sent):
        for number in range(3):
            succeed(reporter, number)
            await await_until(lambda: len(reporter) == 0, 5, "it is sent")

    assert sent == [1, 1, 1]


async def test_while_more_jobs_are_at_hand_only_the_first_leaves_at_once(own):
    async with reporting(own, is_busy=True) as (reporter, sent):
        succeed(reporter, 0)
        await await_until(lambda: sent == [1], 5, "the first is sent")
        succeed(reporter, 1)
        succeed(reporter, 2)
        for _ in range(5):  # Statements take turns on a connection, so theirs would have come.
            await own.run(lambda connection: connection.execute("select 1"))

        assert (sent, len(reporter)) == ([1], 2)


async def test_nothing_is_sent_of_a_job_whose_claim_came_to_nothing(own):
    speculation = SpeculativeStarts(Lease(15))
    async with reporting(own, is_busy=False, speculation=speculation) as (reporter, sent):
        speculation.begin([job(1), job(2), job(3)])
        for number in range(4):
            succeed(reporter, number)
        reporter.end(job(4), End(JobState.FAILED, AttemptStatus.FAILED, "it broke", failed=1))
        reporter.requeue(job(5), Requeue(AttemptStatus.FAILED, "it broke", timedelta(0), failed=1))
        await asyncio.sleep(0)
        assert (sent, reporter.job_ids()) == ([], {0, 1, 2, 3, 4, 5})

        reporter.drop({1, 3, 4, 5})
        speculation.confirm()
        await await_until(lambda: sent == [2], 5, "the others are sent")


@pytest.mark.parametrize(
    ("results", "batches"),
    [
        ([], []),
        ([None] * 2000, [2000]),
        ([None] * 2001, [2000, 1]),
        ([b"x" * 2**20] * 16, [16]),
        ([b"x" * 2**20] * 33, [16, 16, 1]),
        ([None, b"x" * 2**24, None, b"x" * 2**25, b"x"], [3, 1, 1]),
    ],
)
def test_a_batch_has_neither_too_many_reports_nor_too_many_bytes(results, batches):
    numbers = list(range(len(results)))
    sliced = list(slices(Successes(numbers, numbers, numbers, numbers, results)))

    assert [len(each) for each in sliced] == batches
    assert [number for each in sliced for number in each.job_ids] == numbers


def test_progress_that_is_stored_with_the_end_counts_too():
    numbers = list(range(300))
    successes = Successes(numbers, numbers, numbers, numbers, [None] * 300)
    successes.progress.update(dict.fromkeys(numbers, b"x" * 2**16))

    assert [len(each) for each in slices(successes)] == [256, 44]


def test_so_do_failures():
    terms: dict[str, Any] = {"status": AttemptStatus.FAILED, "error": "", "failed": 1}
    report = Ending(JobId(1), Fence(1), 0, 0, state=JobState.FAILED, **terms)
    endings = [replace(report, progress=b"x" * 2**16)] * 300

    assert [len(each) for each in slices(endings)] == [256, 44]
