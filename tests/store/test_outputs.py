"""What attempts print: the newest is kept, in whatever order it arrives."""

from collections.abc import Iterator

import pytest

from mainspring.store import jobs, outputs
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output
from tests.support.queue_driver import QueueDriver


@pytest.fixture
def queue(database_url: str) -> Iterator[QueueDriver]:
    queue = QueueDriver(database_url)
    queue.clean()
    yield queue
    queue.close()


@pytest.fixture
def report(queue: QueueDriver) -> Report:
    """The lease of the one job that runs."""
    queue.call(jobs.enqueue("build", '{"n": 1}'))
    (row,) = queue.claim(queue.register(), 10)
    return Report(row.job_id, row.fence)


def stored(queue: QueueDriver, *found: Output) -> list[tuple[object, ...]]:
    """What is kept after these have come one by one."""
    for output in found:
        queue.run(outputs.store(queue.connection, [output]))
    return queue.execute("select stdout_tail, exit_code from mainspring.outputs")


def test_what_comes_later_takes_the_place_of_what_came_before(queue, report):
    early, later = Output(report, stdout="a"), Output(report, stdout="ab")

    assert stored(queue, early, later) == [("ab", None)]


def test_what_was_taken_while_it_ran_does_not_hide_how_it_ended(queue, report):
    end, late = Output(report, stdout="all", exit_code=0), Output(report, stdout="a")

    assert stored(queue, end, late) == [("all", 0)]


def test_what_an_older_lease_printed_is_left_out(queue, report):
    assert stored(queue, Output(Report(report.job_id, report.fence - 1), stdout="a")) == []
