"""The buffer: whatever is claimed when, jobs start by priority and then by virtual time."""

from contextlib import suppress
from itertools import count
from threading import Thread

from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.claiming.fair_share import FairShare
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.types import WorkerId
from mainspring.runtime.worker.buffer import Buffer, by_lane
from mainspring.runtime.worker.claimed_job import ClaimedJob

LANES = [Lane(priority, tenant, "q") for priority in (50, 100) for tenant in ("a", "b", "c")]
CLAIMS = st.dictionaries(st.sampled_from(LANES), st.integers(1, 5), min_size=1)


def job(number: int, lane: Lane) -> ClaimedJob:
    row = (number, 1, "d", "{}", 1, 0, 0, 3, lane.queue, lane.priority, lane.tenant_id)
    return ClaimedJob((*row, None, None, None, 1), WorkerId(1), 0.0)


class Worker:
    """Claims and starts jobs as a worker does."""

    def __init__(self) -> None:
        self.shares = FairShare()
        self.buffer = Buffer(self.shares)
        self._numbers = count(1)

    def claim(self, given_by: dict[Lane, int]) -> None:
        places = sum(given_by.values())
        self.shares.plan(given_by, places, self.buffer.counts())
        self.shares.claimed(list(given_by.items()), given_by, places + 1)
        claimed = {}
        for lane, number in given_by.items():
            claimed[lane] = [job(next(self._numbers), lane) for _ in range(number)]
        self.buffer.put(claimed)

    def start(self, jobs: int) -> None:
        for _ in range(min(jobs, len(self.buffer.jobs))):
            self.buffer.jobs.popleft()

    def places(self) -> list[tuple[int, float]]:
        """The priority and virtual time of what waits, in the order it would start."""
        starts: dict[int, float] = {}
        for lane, jobs in by_lane(self.buffer).items():
            ids = [each.id for each in jobs]
            starts |= zip(ids, self.shares.virtual_starts(lane, len(jobs)), strict=True)
        return [(each.priority, starts[each.id]) for each in self.buffer]


@given(st.lists(st.tuples(CLAIMS, st.integers(0, 8)), min_size=1))
def test_jobs_start_by_priority_and_then_by_virtual_time(steps: list[tuple[dict[Lane, int], int]]):
    worker = Worker()
    for claimed, started in steps:
        worker.claim(claimed)

        assert worker.places() == sorted(worker.places())
        for jobs in by_lane(worker.buffer).values():
            assert [each.id for each in jobs] == sorted(each.id for each in jobs)

        worker.start(started)


@given(st.lists(st.tuples(CLAIMS, st.booleans()), min_size=1))
def test_whatever_was_paused_is_in_order_once_it_is_resumed(
    steps: list[tuple[dict[Lane, int], bool]],
):
    worker, claimed = Worker(), 0
    for given_by, pauses in steps:
        if pauses:
            worker.buffer.pause()
        worker.claim(given_by)
        claimed += sum(given_by.values())

    worker.buffer.resume()

    assert worker.places() == sorted(worker.places())
    assert len({each.id for each in worker.buffer}) == len(worker.buffer) == claimed


def test_what_is_removed_does_not_start():
    worker = Worker()
    worker.claim({LANES[0]: 2, LANES[1]: 2})
    first, *others = worker.buffer

    worker.buffer.remove([first])

    assert list(worker.buffer) == others


def test_what_is_withdrawn_while_jobs_start_goes_to_one_of_the_two():
    shares = FairShare()
    buffer = Buffer(shares)
    number = 20_000
    buffer.put({LANES[0]: [job(each, LANES[0]) for each in range(number)]})
    withdrawn: list[ClaimedJob] = []
    thread = Thread(target=lambda: withdrawn.extend(buffer.withdraw()))
    started: list[ClaimedJob] = []

    thread.start()
    while buffer:
        with suppress(IndexError):
            started.append(buffer.jobs.popleft())
    thread.join()

    assert sorted(each.id for each in (*started, *withdrawn)) == list(range(number))


def test_a_job_whose_claim_is_not_committed_is_not_withdrawn():
    buffer = Buffer(FairShare())
    jobs = [job(1, LANES[0]), job(2, LANES[0])]
    jobs[0].is_speculative = True
    buffer.put({LANES[0]: jobs})

    assert buffer.withdraw() == [jobs[1]]
    assert list(buffer) == [jobs[0]]
