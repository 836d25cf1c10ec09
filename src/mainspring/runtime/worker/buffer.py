"""The buffer: jobs a worker has claimed and not yet begun, in the order they start.

Runners take from `jobs`. When a tenant who has nothing here is about to be claimed for, the buffer
**pauses**: all but the first few jobs step aside until that claim is through, then everything is
put in the order of fair share. A worker that runs small jobs would otherwise start a thousand
others in the meantime; one that runs slow ones does not even notice.

The thread that keeps the lease **withdraws** what waits here when the event loop is blocked.
Whoever takes a job out of `jobs` has it: a runner does so in one step, and whatever takes several
holds the lock.
"""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import attrgetter

from mainspring.domain.claiming.fair_share import FairShare
from mainspring.domain.claiming.lanes import Lane, lane_order
from mainspring.runtime.worker.claimed_job import ClaimedJob

STARTED_WHILE_PAUSED = 50

Claimed = Mapping[Lane, list[ClaimedJob]]


class Buffer:
    """Claimed jobs, in the order of fair share."""

    def __init__(self, shares: FairShare) -> None:
        self.jobs: deque[ClaimedJob] = deque()
        self.is_paused = False
        self._shares = shares
        self._aside: list[ClaimedJob] = []
        self._lane: Lane | None = None  # Of all the jobs, as long as they have one in common.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.jobs) + len(self._aside)

    def __iter__(self) -> Iterator[ClaimedJob]:
        with self._lock:
            return iter([*self.jobs, *self._aside])

    def counts(self) -> Mapping[Lane, int]:
        """How many jobs of each lane wait here."""
        if not self:
            return {}
        if self._lane is not None:
            return {self._lane: len(self)}
        return {Lane(*key): count for key, count in Counter(map(_key, self)).items()}

    def put(self, claimed: Claimed) -> None:
        """Add jobs that were just claimed, those of each lane in order."""
        with self._lock:
            self._put(claimed)

    def _put(self, claimed: Claimed) -> None:
        (lane, jobs), *others = claimed.items()
        if not others and (not self or lane == self._lane):
            # The only lane there is: nothing to put in order, and nothing to pay for it.
            (self._aside if self.is_paused else self.jobs).extend(jobs)
            self._lane = lane
        elif self.is_paused:
            self._aside.extend(chain.from_iterable(claimed.values()))
            self._lane = None
        elif self and self._lane is not None:
            self._arrange(chain.from_iterable(claimed.values()))
        else:
            self._merge(claimed)

    def pause(self) -> None:
        """Let the first few start and keep the others until `resume`."""
        self.is_paused = True
        with self._lock:
            self._aside.extend(islice(self.jobs, STARTED_WHILE_PAUSED, None))
            while len(self.jobs) > STARTED_WHILE_PAUSED:
                self.jobs.pop()

    def resume(self) -> None:
        """Put everything in order again."""
        if self.is_paused:
            self.is_paused = False
            with self._lock:
                aside, self._aside = self._aside, []
                self._arrange(aside)

    def remove(self, gone: Collection[ClaimedJob]) -> None:
        with self._lock:
            kept = [job for job in self.jobs if job not in gone]
            self.jobs.clear()
            self.jobs.extend(kept)
            self._aside = [job for job in self._aside if job not in gone]

    def clear(self) -> None:
        with self._lock:
            self.jobs.clear()
            self._aside.clear()

    def withdraw(self) -> list[ClaimedJob]:
        """Take out all jobs, in any thread. One whose claim is not committed stays: nobody else
        could have it yet."""
        with self._lock:
            waiting = [*self._taken(), *self._aside]
            kept = [job for job in waiting if job.is_speculative]
            self._aside.clear()
            self.jobs.extend(kept)
        return [job for job in waiting if job not in kept]

    def _taken(self) -> Iterator[ClaimedJob]:
        """The jobs that no runner has taken meanwhile."""
        while self.jobs:
            try:
                yield self.jobs.popleft()
            except IndexError:
                return

    def _arrange(self, added: Iterable[ClaimedJob]) -> None:
        """Put all jobs in order, whatever order they had."""
        waiting = by_lane(chain(self.jobs, added))
        for jobs in waiting.values():
            jobs.sort(key=lane_order)
        self.jobs.clear()
        self._merge(waiting)
        if len(waiting) == 1:
            (self._lane,) = waiting

    def _merge(self, claimed: Claimed) -> None:
        """Put the last jobs that lanes gave among those that wait in order already. Most come up
        after all of these, so only the others are looked at."""
        added: list[ClaimedJob] = []
        for lane, jobs in claimed.items():
            for job, start in zip(jobs, self._shares.virtual_starts(lane, len(jobs)), strict=True):
                job.virtual_start = start
            added += jobs
        added = _in_order(added)
        later = deque[ClaimedJob]()
        while added and self.jobs and _order(self.jobs[-1]) > _order(added[0]):
            later.appendleft(self.jobs.pop())
        self.jobs.extend(_in_order(chain(later, added)) if later else added)
        self._lane = None


def lane_of(job: ClaimedJob) -> Lane:
    return Lane(*_key(job))


def by_lane(jobs: Iterable[ClaimedJob]) -> dict[Lane, list[ClaimedJob]]:
    groups: dict[tuple[int, str, str], list[ClaimedJob]] = defaultdict(list)
    for job in jobs:
        groups[_key(job)].append(job)
    return {Lane(*key): group for key, group in groups.items()}


def _in_order(jobs: Iterable[ClaimedJob]) -> list[ClaimedJob]:
    # Twice by one number is faster than once by two.
    return sorted(sorted(jobs, key=_virtual_start), key=_priority)


_key: Callable[[ClaimedJob], tuple[int, str, str]] = attrgetter("priority", "tenant_id", "queue")
_order = attrgetter("priority", "virtual_start")
_priority = attrgetter("priority")
_virtual_start = attrgetter("virtual_start")
