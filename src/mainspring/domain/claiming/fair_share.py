"""Fair share: what each lane may give to a claim, and the order in which claimed jobs start.

Tenants of one queue and priority are served by weight. Each lane has a **virtual time**, the moment
its next job is up, counted in jobs by weight: a job moves the virtual time of a lane of weight 1 on
by one, that of a lane of weight 4 by a quarter. Whatever starts next is of the lane whose virtual
time is the earliest.

    weight 1   A─────────────A─────────────A─────────────A
    weight 4   B──B──B──B──B──B──B──B──B──B──B──B──B──B──B      ──▶ virtual time
               └ clock: the virtual time of the job that starts next

So of lanes that always have work each gets its share to within one job, and n jobs of a lane start
before the others, whose weights are W in all, have started n·W/w more, and one more each: that is
the bound on starving. It holds within a claim, from claim to claim, since virtual times are kept,
and so with more lanes than a claim wants jobs: those it left out are the first of the next.

A lane that had no work comes back at the clock: it has saved nothing up and owes nothing. What
it does not use is borrowed by the others, who owe nothing for it either.

Jobs claimed ahead wait in the buffer of the worker in the same order. The lane that has many of
them there has its virtual time far behind the clock, so a newcomer's jobs are claimed first and
start between them, not after them.

A claim is one statement that visits lanes in an order and takes what each may give, up to the jobs
that are wanted. Lanes of a more urgent priority are emptied before any other is visited. Where
lanes share a priority nobody knows beforehand how many jobs each has: if some give less than their
share, another statement shares out what is still wanted. A lane alone in its priority may give all
there is, in a single statement. Lanes that were found empty may have work again; each is asked for
its share at the head of the others, who give the rest if there is none, and for one job at least as
soon as its virtual time has come: a claim of a single job asks them all.

Jobs that wait for limits are in no lane before they are claimed, so nobody knows who has more of
them. A tenant that has only such work is served by the lane that it was last claimed from. It goes
before others of the same virtual time, and may fall behind the clock by as many jobs as its weight:
a claim of a single job could otherwise pass it over for ever, or serve it as if it had weight one.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeVar

from mainspring.domain.claiming.lanes import LEAST_URGENT, Lane, ReadyLane

T = TypeVar("T")

# How far a tenant that waits for limits may fall behind the clock, in jobs of weight one.
_LAG = 1.0

Visit = tuple[Lane, int]
"""A lane and how many jobs it may give."""


class LimitedShares(NamedTuple):
    """What a claim of jobs that wait for limits may take: nothing less urgent than `lowest`, and of
    what is as urgent as that the share of each tenant; None if none is held to a share."""

    lowest: int = LEAST_URGENT
    shares: Mapping[str, int] | None = None


@dataclass(slots=True)
class FairShare:
    """The virtual times of the lanes one claimer knows. `buffered` is how many jobs of each lane it
    has claimed that have not begun."""

    backlogged: set[Lane] = field(default_factory=set)
    """The lanes that had more when they were last looked at."""
    virtual_times: dict[Lane, float] = field(default_factory=dict)
    weights: dict[Lane, int] = field(default_factory=dict)
    limited: set[Lane] = field(default_factory=set)
    """The lanes of jobs that waited for limits."""
    limited_turn: int = 0
    """Who gets the odd job of a tenant that has limited and other work: 1 for the limited."""

    def swept(self, found: Sequence[ReadyLane], buffered: Mapping[Lane, int]) -> None:
        """These lanes have work, with these weights, and no others have."""
        self.weights |= {each.lane: each.weight for each in found}
        lanes = [each.lane for each in found]
        self.backlogged.intersection_update(lanes)
        self._catch_up(lanes, buffered)
        self.backlogged.update(lanes)

    def announced(self, lane: Lane, weight: int, buffered: Mapping[Lane, int]) -> None:
        """This lane has work."""
        self.weights[lane] = weight
        self._catch_up([lane], buffered)
        self.backlogged.add(lane)

    def forget(self, known: Collection[Lane], buffered: Mapping[Lane, int]) -> None:
        """Keep nothing of lanes that are neither known nor buffered; of those that waited for
        limits, what the clock has left behind."""
        unknown = [
            lane for lane in self.virtual_times if lane not in known and lane not in buffered
        ]
        clocks = self._clocks(self.limited.intersection(unknown), buffered)
        for lane in unknown:
            if lane in self.limited and self.virtual_times[lane] > clocks[lane.priority] - _LAG:
                continue
            self.limited.discard(lane)
            del self.virtual_times[lane]
            self.weights.pop(lane, None)

    def plan(self, lanes: Iterable[Lane], wanted: int, buffered: Mapping[Lane, int]) -> list[Visit]:
        """The visits of one statement, in order. It does not go on to another priority while
        lanes of this one may have more than their share."""
        ordered = sorted(lanes)
        self._catch_up(ordered, buffered)
        visits: list[Visit] = []
        for _, level in groupby(ordered, key=_priority):
            together = list(level)
            if len(together) > 1 and not self.backlogged.isdisjoint(together):
                return visits + self._shares(together, wanted)
            visits += [(lane, wanted) for lane in together]
        return visits

    def claimed(
        self, visits: Sequence[Visit], given: Mapping[Lane, int], wanted: int
    ) -> list[Lane]:
        """Note what the visits gave; the answer is the lanes that have nothing left."""
        last = max((n for n, (lane, _) in enumerate(visits) if given.get(lane)), default=-1)
        # Once all that was wanted was taken nobody else was asked, and the last not for all it has.
        asked = last if sum(given.values()) >= wanted else len(visits)
        empty = []
        for number, (lane, share) in enumerate(visits):
            count = given.get(lane, 0)
            self.virtual_times[lane] = self.virtual_times.get(lane, 0.0) + count * self._step(lane)
            if count >= share:
                self.backlogged.add(lane)
            elif number < asked:
                self.backlogged.discard(lane)
                empty.append(lane)
        return empty

    def limited_shares(
        self, tenants: Iterable[str], wanted: int, buffered: Mapping[Lane, int]
    ) -> LimitedShares:
        """What tenants may give of jobs that wait for limits, beside the lanes that have more."""
        if not self.backlogged:
            return LimitedShares()
        lowest = min(map(_priority, self.backlogged))
        together = {lane for lane in self.backlogged if lane.priority == lowest}
        theirs = {tenant: self._lanes_of(tenant, lowest, together) for tenant in tenants}
        waiting = set().union(*theirs.values()) - together
        self.limited |= waiting
        lanes = [*sorted(waiting), *sorted(together)]
        self._catch_up(lanes, buffered)
        given = dict(self._share_out(lanes, wanted))
        self.limited_turn = 1 - self.limited_turn
        shares = {}
        for tenant, own in theirs.items():
            share = sum(given.get(lane, 0) for lane in own)
            has_both = not together.isdisjoint(own)
            shares[tenant] = (share + self.limited_turn) // 2 if has_both else share
        return LimitedShares(lowest, shares)

    def claimed_limited(
        self, given: Mapping[Lane, int], weights: Mapping[str, int], buffered: Mapping[Lane, int]
    ) -> None:
        """Count jobs that waited for limits, with the weights of tenants where these are not 1."""
        self.weights |= {lane: weights.get(lane.tenant_id, 1) for lane in given}
        for lane in given:
            self._name_queue(lane)
        self._catch_up(list(given), buffered)
        for lane, count in given.items():
            self.virtual_times[lane] += count * self._step(lane)

    def returned_limited(self, given: Mapping[Lane, int]) -> None:
        """These were given back unstarted and wait for their limits again."""
        for lane, count in given.items():
            self.virtual_times[lane] = self.virtual_times.get(lane, 0.0) - count * self._step(lane)

    def returned(self, given: Mapping[Lane, int]) -> None:
        """These jobs were given back unstarted: their lanes have work, and owe nothing for it."""
        for lane, count in given.items():
            self.virtual_times[lane] = self.virtual_times.get(lane, 0.0) - count * self._step(lane)
            self.backlogged.add(lane)

    def in_order(self, waiting: Mapping[Lane, Sequence[T]]) -> list[T]:
        """All that waits in the order it starts: by priority, then by virtual time. What a lane
        has here was the last it gave, and keeps its order."""
        ordered: list[T] = []
        for _, level in groupby(sorted(waiting), key=_priority):
            jobs: list[T] = []
            starts: list[float] = []
            for lane in level:
                jobs += waiting[lane]
                starts += self.virtual_starts(lane, len(waiting[lane]))
            ordered += [jobs[number] for number in sorted(range(len(jobs)), key=starts.__getitem__)]
        return ordered

    def virtual_starts(self, lane: Lane, count: int) -> list[float]:
        """The virtual times at which the last jobs that a lane gave start."""
        step = self._step(lane)
        first = self.virtual_times.get(lane, 0.0) - count * step
        return [first + number * step for number in range(count)]

    def _shares(self, lanes: list[Lane], wanted: int) -> list[Visit]:
        backlogged = [lane for lane in lanes if lane in self.backlogged]
        shares = self._share_out(backlogged, wanted)
        if len(backlogged) == len(lanes):
            return shares
        asked = dict(self._share_out(lanes, wanted))
        clock = min(self.virtual_times[lane] for lane in backlogged)
        due = {lane: 1 for lane in lanes if lane not in asked and self.virtual_times[lane] <= clock}
        return [
            visit for visit in (asked | due).items() if visit[0] not in self.backlogged
        ] + shares

    def _share_out(self, lanes: Sequence[Lane], wanted: int) -> list[Visit]:
        """The lanes that give any of the jobs, and how many, the earliest virtual time first."""
        if len(lanes) == 1:
            return [(lanes[0], wanted)]
        ordered = sorted(lanes, key=self.virtual_times.__getitem__)
        weights = [self.weights.get(lane, 1) for lane in ordered]
        times = [self.virtual_times[lane] for lane in ordered]
        rounds = _whole_rounds(times, weights, wanted)
        steps = [1 / weight for weight in weights]
        shares = [rounds * weight for weight in weights]
        # Whole rounds move all virtual times on alike, so they need not be gone through.
        coming = [(time, number) for number, time in enumerate(times)]
        for _ in range(wanted - sum(shares)):
            time, number = coming[0]
            shares[number] += 1
            heapq.heapreplace(coming, (time + steps[number], number))
        return [visit for visit in zip(ordered, shares, strict=True) if visit[1]]

    def _catch_up(self, lanes: Sequence[Lane], buffered: Mapping[Lane, int]) -> None:
        """Bring lanes that stood idle up to the clock."""
        idle = [lane for lane in lanes if lane not in self.backlogged and not buffered.get(lane)]
        clocks = self._clocks(idle, buffered)
        for lane in idle:
            clock = clocks[lane.priority]
            least = clock - _LAG if lane in self.limited else clock
            self.virtual_times[lane] = max(self.virtual_times.get(lane, clock), least)
        for lane in lanes:
            self.virtual_times.setdefault(lane, 0.0)

    def _clocks(self, lanes: Iterable[Lane], buffered: Mapping[Lane, int]) -> Mapping[int, float]:
        """By priority."""
        return {
            priority: self._clock(priority, buffered) for priority in set(map(_priority, lanes))
        }

    def _clock(self, priority: int, buffered: Mapping[Lane, int]) -> float:
        known = [
            (lane, time) for lane, time in self.virtual_times.items() if lane.priority == priority
        ]
        coming = [
            time - buffered.get(lane, 0) * self._step(lane)
            for lane, time in known
            if lane in self.backlogged or buffered.get(lane)
        ]
        return min(coming) if coming else max((time for _, time in known), default=0.0)

    def _lanes_of(self, tenant_id: str, priority: int, backlogged: Iterable[Lane]) -> list[Lane]:
        """The lanes by which a tenant is served: those that have more, or the one that gave last.
        A tenant that has given nothing has one without a queue."""
        own = [lane for lane in backlogged if lane.tenant_id == tenant_id]
        if own:
            return own
        known = (
            lane
            for lane in self.virtual_times
            if lane.priority == priority and lane.tenant_id == tenant_id
        )
        nameless = Lane(priority, tenant_id, "")
        return [max(known, key=lambda lane: (self.virtual_times[lane], lane), default=nameless)]

    def _name_queue(self, lane: Lane) -> None:
        """The tenant that had a lane without a queue has this one."""
        nameless = Lane(lane.priority, lane.tenant_id, "")
        time = self.virtual_times.pop(nameless, None)
        self.limited.discard(nameless)
        self.limited.add(lane)
        if time is not None:
            self.virtual_times.setdefault(lane, time)

    def _step(self, lane: Lane) -> float:
        return 1 / self.weights.get(lane, 1)


def _whole_rounds(times: Sequence[float], weights: Sequence[int], wanted: int) -> int:
    """How often each lane gives as many jobs as its weight, whatever the rest is."""
    total = sum(weights)
    moved = sum(time * weight for time, weight in zip(times, weights, strict=True))
    # Where all virtual times would be if jobs could be divided.
    level = (wanted + moved) / total
    return max(0, int(level - times[-1]) - 1)


def _priority(lane: Lane) -> int:
    return lane.priority
