"""Whose turn it is: what each lane may give to a claim, and the order in which claimed jobs start.

Tenants of one queue and priority take turns. Each lane has a **turn**, the moment its next job is
up, counted in jobs by weight: a job moves the turn of a lane of weight 1 on by one, that of a lane
of weight 4 by a quarter. Whatever starts next is of the lane whose turn comes first.

    weight 1   A─────────────A─────────────A─────────────A
    weight 4   B──B──B──B──B──B──B──B──B──B──B──B──B──B──B      ──▶ turns
               └ clock: the turn of the job that starts next

So of lanes that always have work each gets its share to within one job, and n jobs of a lane start
before the others, whose weights are W in all, have started n·W/w more, and one more each: that is
the bound on starving. It holds within a claim, from claim to claim, since turns are kept, and so
with more lanes than a claim has places: those it left out are the first of the next.

A lane that had no work comes back at the clock: it has saved nothing up and owes nothing. What
it does not use is borrowed by the others, who owe nothing for it either.

Jobs claimed ahead wait in the buffer of the worker in the same order. The lane that holds many of
them there has its turn far behind the clock, so a newcomer's jobs are claimed first and start
between them, not after them.

A claim is one statement that visits lanes in an order and takes what each may give, up to the
places there are. Lanes of a more urgent priority are emptied before any other is visited. Where
lanes share the places of a priority nobody knows beforehand how many jobs each has: if some give
less than their share, another statement shares out what is left of the places. A lane alone in its
priority may give all there is, in a single statement. Lanes that were found empty may have work
again; each is asked for its share at the head of the others, who fill the places if there is none,
and for one job at least as soon as it is its turn: a claim of a single place asks them all.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from mainspring.domain.claiming.lanes import Lane, Waiting

T = TypeVar("T")

Visit = tuple[Lane, int]
"""A lane and how many jobs it may give."""


@dataclass(slots=True)
class Turns:
    """The turns of the lanes one worker knows. `held` is what waits in its buffer, by lane."""

    live: set[Lane] = field(default_factory=set)
    """The lanes that had more when they were last looked at."""
    turns: dict[Lane, float] = field(default_factory=dict)
    weights: dict[Lane, int] = field(default_factory=dict)

    def swept(self, found: Sequence[Waiting], held: Mapping[Lane, int]) -> None:
        """These lanes have work, with these weights, and no others have."""
        self.weights |= {each.lane: each.weight for each in found}
        lanes = [each.lane for each in found]
        self.live.intersection_update(lanes)
        self._settle(lanes, held)
        self.live.update(lanes)

    def told(self, lane: Lane, weight: int, held: Mapping[Lane, int]) -> None:
        """This lane has work."""
        self.weights[lane] = weight
        self._settle([lane], held)
        self.live.add(lane)

    def forget(self, known: Collection[Lane], held: Mapping[Lane, int]) -> None:
        """Keep nothing of lanes that are neither known nor held."""
        for lane in [lane for lane in self.turns if lane not in known and lane not in held]:
            del self.turns[lane]
            self.weights.pop(lane, None)

    def plan(self, lanes: Iterable[Lane], places: int, held: Mapping[Lane, int]) -> list[Visit]:
        """The visits of one statement, in order. It does not go on to another priority while
        lanes of this one may have more than their share."""
        ordered = sorted(lanes)
        self._settle(ordered, held)
        visits: list[Visit] = []
        for _, level in groupby(ordered, key=_priority):
            together = list(level)
            if len(together) > 1 and not self.live.isdisjoint(together):
                return visits + self._shares(together, places)
            visits += [(lane, places) for lane in together]
        return visits

    def claimed(
        self, visits: Sequence[Visit], given: Mapping[Lane, int], places: int
    ) -> list[Lane]:
        """Note what the visits gave; the answer is the lanes that have nothing left."""
        last = max((n for n, (lane, _) in enumerate(visits) if given.get(lane)), default=-1)
        # Once all places were taken nobody else was asked, and the last not for all it has.
        asked = last if sum(given.values()) >= places else len(visits)
        empty = []
        for number, (lane, share) in enumerate(visits):
            count = given.get(lane, 0)
            self.turns[lane] = self.turns.get(lane, 0.0) + count * self._step(lane)
            if count == share:
                self.live.add(lane)
            elif number < asked:
                self.live.discard(lane)
                empty.append(lane)
        return empty

    def returned(self, given: Mapping[Lane, int]) -> None:
        """These jobs were given back unstarted: their lanes have work, and owe nothing for it."""
        for lane, count in given.items():
            self.turns[lane] = self.turns.get(lane, 0.0) - count * self._step(lane)
            self.live.add(lane)

    def in_turn(self, waiting: Mapping[Lane, Sequence[T]]) -> list[T]:
        """All that waits in the order it starts: by priority, then by turn. What a lane holds
        was the last it gave, and keeps its order."""
        ordered: list[T] = []
        for _, level in groupby(sorted(waiting), key=_priority):
            jobs: list[T] = []
            turns: list[float] = []
            for lane in level:
                jobs += waiting[lane]
                turns += self.last_turns(lane, len(waiting[lane]))
            ordered += [jobs[place] for place in sorted(range(len(jobs)), key=turns.__getitem__)]
        return ordered

    def last_turns(self, lane: Lane, count: int) -> list[float]:
        """The turns of the last jobs that a lane gave."""
        step = self._step(lane)
        first = self.turns.get(lane, 0.0) - count * step
        return [first + number * step for number in range(count)]

    def _shares(self, lanes: list[Lane], places: int) -> list[Visit]:
        live = [lane for lane in lanes if lane in self.live]
        shares = self._share_out(live, places)
        if len(live) == len(lanes):
            return shares
        asked = dict(self._share_out(lanes, places))
        clock = min(self.turns[lane] for lane in live)
        due = {lane: 1 for lane in lanes if lane not in asked and self.turns[lane] <= clock}
        return [visit for visit in (asked | due).items() if visit[0] not in self.live] + shares

    def _share_out(self, lanes: Sequence[Lane], places: int) -> list[Visit]:
        """The lanes that get any of the places, and how many, the first turn first."""
        if len(lanes) == 1:
            return [(lanes[0], places)]
        ordered = sorted(lanes, key=self.turns.__getitem__)
        weights = [self.weights.get(lane, 1) for lane in ordered]
        turns = [self.turns[lane] for lane in ordered]
        rounds = _whole_rounds(turns, weights, places)
        steps = [1 / weight for weight in weights]
        shares = [rounds * weight for weight in weights]
        # Whole rounds move all turns on alike, so they need not be gone through.
        coming = [(turn, number) for number, turn in enumerate(turns)]
        for _ in range(places - sum(shares)):
            turn, number = coming[0]
            shares[number] += 1
            heapq.heapreplace(coming, (turn + steps[number], number))
        return [visit for visit in zip(ordered, shares, strict=True) if visit[1]]

    def _settle(self, lanes: Sequence[Lane], held: Mapping[Lane, int]) -> None:
        """Bring lanes that stood idle up to the clock."""
        idle = [lane for lane in lanes if lane not in self.live and not held.get(lane)]
        clocks = {priority: self._clock(priority, held) for priority in set(map(_priority, idle))}
        for lane in idle:
            self.turns[lane] = max(self.turns.get(lane, 0.0), clocks[lane.priority])
        for lane in lanes:
            self.turns.setdefault(lane, 0.0)

    def _clock(self, priority: int, held: Mapping[Lane, int]) -> float:
        known = [(lane, turn) for lane, turn in self.turns.items() if lane.priority == priority]
        coming = [
            turn - held.get(lane, 0) * self._step(lane)
            for lane, turn in known
            if lane in self.live or held.get(lane)
        ]
        return min(coming) if coming else max((turn for _, turn in known), default=0.0)

    def _step(self, lane: Lane) -> float:
        return 1 / self.weights.get(lane, 1)


def _whole_rounds(turns: Sequence[float], weights: Sequence[int], places: int) -> int:
    """How often each lane gets as many of the places as its weight, whatever the rest is."""
    total = sum(weights)
    moved = sum(turn * weight for turn, weight in zip(turns, weights, strict=True))
    # Where all turns would be if jobs could be divided.
    level = (places + moved) / total
    return max(0, int(level - turns[-1]) - 1)


def _priority(lane: Lane) -> int:
    return lane.priority
