"""Where a claim looks: lanes, their low-water marks, and when to look below them again.

A lane is one (queue, priority, tenant) of the ready index; inside it jobs are claimed in the
order of their ids. Claimed rows leave dead entries at the head of the lane, and while some
other session holds an old snapshot nothing can remove them: a claim that starts at the head
steps over every job ever claimed.

    ready index of a lane   ✗ ✗ ✗ ✗ ✗ ✗ ✗ ✗ ✗ ● ● ● ● ●        ✗ dead   ● ready
                            │                 └ mark: a claim starts behind it
                            └ a sweep starts here

So each worker remembers the last id it claimed in each lane and starts behind it. A job that
becomes ready below the mark because its time has come or it is retried is named: the worker that
promotes it knows its id, others are notified of it, and the next claim asks for that entry by
itself. What else appears below the mark (a transaction that committed late) is found by a sweep:
it discovers the lanes anew, each with its first ready job, and sets the marks before those. A
worker that ran dry sweeps whenever it looks, after it has claimed from behind its marks; one that
is busy sweeps every second. Either way a sweep that turned out slow waits forty times its own
duration before the next, so that sweeping costs a fortieth of the time at most.

Where the walk over dead entries takes long, the marks are floors as well: sweeps look only behind
them and between lanes, which is quick, and what is below is looked for on another connection and
named. Floors are noted in the database, so that a worker that starts does not begin with the walk.

A second is long for a tenant without a lane here: so whoever enqueues to a lane that looks empty
while all workers are busy notifies them of the lane and its mark. Which lanes give how much to a
claim is in `fair_share.py`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

LEAST_URGENT = 1000
"""The priority that comes after all others."""
_SWEEP_EVERY = 1.0
_COST_FACTOR = 40.0
_DRY_LANES = 32
# A sweep that takes so long walks over dead entries; what is below the floors is then looked for
# beside the claims.
_DEAR = 0.05
_MOST_FLOORS = 1000
# How many jobs are remembered by name; beyond that a sweep is the better way to find them.
_MOST_NAMED = 10_000
_MOST_NAMED_IN_CLAIM = 500
_LAST_ID = 2**63 - 1
# What PostgreSQL can store as text: neither NUL nor half of a surrogate pair.
_NAME = re.compile("[^\0\ud800-\udfff]+")


# The order of the jobs of a lane as a sort key, the same as that of the statement `claim`.
lane_order: Callable[[Any], int] = attrgetter("id")


class Lane(NamedTuple):
    """One (priority, tenant, queue) of the ready index; lanes sort in the order of claiming."""

    priority: int
    tenant_id: str
    queue: str


class ReadyLane(NamedTuple):
    """A lane with ready jobs: the id of its first, and the weight of its tenant."""

    lane: Lane
    first: int
    weight: int = 1


class NamedJobs(NamedTuple):
    """Jobs of a lane that became ready, and the weight of its tenant."""

    lane: Lane
    job_ids: list[int]
    weight: int


class Span(NamedTuple):
    """A part of a lane: behind the first id, up to the second, and how many jobs it may give."""

    mark: int
    until: int
    share: int


@dataclass(slots=True)
class LaneBook:
    """What one worker knows about its lanes."""

    marks: dict[Lane, int] = field(default_factory=dict)
    named: dict[Lane, dict[int, None]] = field(default_factory=dict)
    """Jobs that are said to be ready below the marks, in the order they were named."""
    swept_at: float = float("-inf")
    sweep_cost: float = 0.0
    is_hurried: bool = False
    floor_cost: float = 0.0
    """How long a sweep above the floors took."""

    @property
    def is_dear(self) -> bool:
        """Whether sweeps are to look above the marks only."""
        return self.sweep_cost >= _DEAR and bool(self.marks)

    @property
    def floors(self) -> list[tuple[Lane, int]]:
        """The marks below which a walk takes long, or may do so."""
        return list(self.marks.items())[-_MOST_FLOORS:]

    def restore(self, floors: Mapping[Lane, int], cost: float) -> None:
        """Begin with floors that others have noted, unless something is known already."""
        if floors and not self.marks:
            self.marks, self.sweep_cost = dict(floors), cost

    def is_sweep_due(self, now: float, *, is_busy: bool) -> bool:
        """Whether it is time to sweep; `now` is a monotonic instant."""
        rest = self._rest()
        if is_busy and self.marks and not self.is_hurried:
            rest = max(rest, _SWEEP_EVERY)
        return now >= self.swept_at + rest

    def until_sweep(self, now: float) -> float:
        """Seconds until a worker that ran dry may sweep."""
        return max(0.0, self.swept_at + self._rest() - now)

    def _rest(self) -> float:
        return (self.floor_cost if self.is_dear else self.sweep_cost) * _COST_FACTOR

    def swept(self, lanes: Iterable[ReadyLane], *, now: float, cost: float) -> None:
        """Remember a sweep: each lane found is marked before its first job. Lanes that ran
        dry are kept for a while, since work tends to come where it came before."""
        found = {lane: first - 1 for lane, first, _ in lanes}
        dry = [(lane, mark) for lane, mark in self.marks.items() if lane not in found]
        self.marks = dict(dry[-_DRY_LANES:]) | found
        self.swept_at, self.sweep_cost, self.is_hurried = now, cost, False

    def swept_above(self, lanes: Iterable[ReadyLane], *, now: float, cost: float) -> None:
        """Remember a sweep above the floors: lanes that are new are marked before their first job,
        the marks of the others stay."""
        for lane, first, _ in lanes:
            self.marks.setdefault(lane, first - 1)
        self.swept_at, self.floor_cost, self.is_hurried = now, cost, False

    def announced(self, ready: ReadyLane) -> None:
        """Look at this lane from this job on, or from where we were if that is before it."""
        self.marks[ready.lane] = min(ready.first - 1, self.marks.get(ready.lane, ready.first - 1))

    def name(self, lane: Lane, job_ids: Iterable[int]) -> None:
        """These jobs of the lane are ready; look for those that are not behind its mark."""
        ids = list(job_ids)
        mark = self.marks.setdefault(lane, max(ids))
        free = max(0, _MOST_NAMED - sum(map(len, self.named.values())))
        if below := [job_id for job_id in ids if job_id <= mark][:free]:
            self.named.setdefault(lane, {}).update(dict.fromkeys(below))

    def spans(self, lane: Lane, share: int) -> list[Span]:
        """Where a visit looks for this many jobs: at what was named, then behind the mark."""
        known = list(self.named.get(lane, ()))[:_MOST_NAMED_IN_CLAIM]
        alone = [Span(job_id - 1, job_id, 1) for job_id in known]
        return [*alone, Span(self.marks.get(lane, 0), _LAST_ID, share)]

    def looked(self, lane: Lane, job_id: int) -> None:
        """This job was claimed, or is no longer ready, if it was named."""
        named = self.named.get(lane, {})
        named.pop(job_id, None)
        if not named:
            self.named.pop(lane, None)

    def hurry(self) -> None:
        """Let a busy worker sweep before its next claim, unless the last sweep was dear."""
        self.is_hurried = True

    def claimed(self, lane: Lane, job_id: int) -> None:
        """Raise the lane's mark to a claimed job."""
        if job_id > self.marks.get(lane, 0):
            self.marks[lane] = job_id


def parse_named_jobs(text: str) -> NamedJobs | None:
    """Jobs that became ready, as they are announced: queue, priority, tenant, weight and their ids,
    as JSON. None if it is anything else, for everyone may send notifications."""
    try:
        queue, priority, tenant_id, weight, job_ids = json.loads(text)
        ready = [ReadyLane(Lane(priority, tenant_id, queue), each, weight) for each in job_ids]
    except (ValueError, TypeError, RecursionError):
        return None
    if not ready or len(ready) > _MOST_NAMED or not all(map(_is_valid, ready)):
        return None
    return NamedJobs(ready[0].lane, job_ids, weight)


def parse_ready_lane(text: str) -> ReadyLane | None:
    """A lane as an enqueue announces it: queue, priority, tenant, first job and weight, as JSON.

    None if it is anything else, for everyone may send notifications.
    """
    try:
        queue, priority, tenant_id, first, weight = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    ready = ReadyLane(Lane(priority, tenant_id, queue), first, weight)
    return ready if _is_valid(ready) else None


def _is_valid(ready: ReadyLane) -> bool:
    (priority, tenant_id, queue), first, weight = ready
    ranges = ((priority, 0, LEAST_URGENT), (first, 1, 2**63 - 1), (weight, 1, 1000))
    return all(type(number) is int and low <= number <= high for number, low, high in ranges) and (
        all(isinstance(name, str) and _NAME.fullmatch(name) for name in (tenant_id, queue))
    )
