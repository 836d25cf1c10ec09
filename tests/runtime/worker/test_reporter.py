"""Reports: one alone leaves at once; while more jobs are at hand, the next wait for each other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.jobs.outcomes import End, Requeue
from mainspring.domain.types import AttemptStatus, JobState, WorkerId
from mainspring.runtime.worker import reporter
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.speculation import SpeculativeStarts
from tests.support.waiting import await_until


@pytest.fixture
async def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> ReconnectingConnection:
    """The reporter's connection; a batch that is held is held for as long as a test lasts."""
    monkeypatch.setattr(reporter, "_APART_SECONDS", 60.0)
    return ReconnectingConnection(database_url, name="reports")


@asynccontextmanager
async def reporting(
    own: ReconnectingConnection, is_busy: Callable[[], bool], early: SpeculativeStarts | None = None
) -> AsyncIterator[tuple[Reporter, list[int]]]:
    """A reporter at work, and how many reports each of its batches had."""
    sent: list[int] = []
    reporter = Reporter(
        own, early=early or SpeculativeStarts(), on_sent=sent.append, is_busy=is_busy
    )
    task = asyncio.create_task(reporter.run())
    try:
        yield reporter, sent
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
    async with reporting(own, is_busy=lambda: False) as (reporter, sent):
        for number in range(3):
            succeed(reporter, number)
            await await_until(lambda: len(reporter) == 0, 5, "it is sent")

    assert sent == [1, 1, 1]


async def test_while_more_jobs_are_at_hand_only_the_first_leaves_at_once(own):
    async with reporting(own, is_busy=lambda: True) as (reporter, sent):
        succeed(reporter, 0)
        await await_until(lambda: sent == [1], 5, "the first is sent")
        succeed(reporter, 1)
        succeed(reporter, 2)
        for _ in range(5):  # Statements take turns on a connection, so theirs would have come.
            await own.run(lambda connection: connection.execute("select 1"))

        assert (sent, len(reporter)) == ([1], 2)


async def test_nothing_is_sent_of_a_job_whose_claim_came_to_nothing(own):
    early = SpeculativeStarts()
    async with reporting(own, lambda: False, early) as (reporter, sent):
        early.begin([job(1), job(2), job(3)])
        for number in range(4):
            succeed(reporter, number)
        reporter.end(job(4), End(JobState.FAILED, AttemptStatus.FAILED, "it broke", failed=1))
        reporter.requeue(job(5), Requeue(AttemptStatus.FAILED, "it broke", timedelta(0), failed=1))
        await asyncio.sleep(0)
        assert (sent, reporter.job_ids()) == ([], {0, 1, 2, 3, 4, 5})

        reporter.drop({1, 3, 4, 5})
        early.confirm()
        await await_until(lambda: sent == [2], 5, "the others are sent")
