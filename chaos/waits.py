"""How long what could move stood still, and how long it may.

A clock runs only while the wait is nobody's excuse: the thing is ready, the database answers and
a live, unpaused worker (for slots and events: scheduler) is there to serve it. It adds up over
such times and is never set back. A fault of one worker therefore excuses that worker's own jobs
only, and those have a bound of their own, from the moment it broke.

    enqueued      database away       worker paused, another live      claimed
       |-----------|..............|--------------------------------------|
          counts     and 6 s more                 counts

The bounds are those of docs/guarantees.md ("Liveness") for the lease L and the poll interval P of
the run, plus SLACK_SECONDS for a machine that also runs the processes that are started again.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos import spans
from chaos.checks import Violation
from chaos.histories import Attempt, History, Hold, Job
from chaos.spans import Span, Spans

LEASE_SECONDS = 3.0
POLL_SECONDS = 0.5
BACKOFF_SECONDS = 0.2
SLACK_SECONDS = 3.0
# A claim that is open while its worker breaks is ended by the server after a quarter of the lease.
_OPEN_CLAIM_SECONDS = LEASE_SECONDS / 4
_CLAIM_SECONDS = POLL_SECONDS + _OPEN_CLAIM_SECONDS + SLACK_SECONDS
_RECOVERY_SECONDS = LEASE_SECONDS + 2
# No job of chaos.jobs takes longer.
LONGEST_RUN_SECONDS = 4.5
# Suspects run in processes of their own, eight a worker: a place is waited for up to ten seconds,
# and three workers start 24 processes at once, on two cores that are busy.
_SUSPECT_SECONDS = 10.0 + 24.0
# What one worker needs for two bursts of the heavy tenant: see chaos.operations.
BACKLOG_SECONDS = 14.0

BOUNDS: Mapping[str, float] = {
    "ready": _CLAIM_SECONDS,
    "delayed": 1 + _CLAIM_SECONDS,
    "retried": BACKOFF_SECONDS + 1 + _CLAIM_SECONDS,
    "recovered": _RECOVERY_SECONDS + _CLAIM_SECONDS,
    "suspect": _SUSPECT_SECONDS + SLACK_SECONDS,
    "limit": 1 + _CLAIM_SECONDS,
    "parents": 3 + _CLAIM_SECONDS,
    "approval": _CLAIM_SECONDS,
    "backlog": BACKLOG_SECONDS + _CLAIM_SECONDS,
    "slot": 6 + SLACK_SECONDS,
    "event": POLL_SECONDS + SLACK_SECONDS,
}
MEANINGS: Mapping[str, str] = {
    "ready": "enqueued → started",
    "delayed": "delay over → started",
    "retried": "failed or handed back → claimed again",
    "recovered": "worker broken → its job claimed again",
    "suspect": "job of a broken worker claimed again → started in a process of its own",
    "limit": "place of a limit free → claimed",
    "parents": "last parent ended → started",
    "approval": "approved → started",
    "backlog": "enqueued in a burst of the heavy tenant → started",
    "slot": "slot due → fired",
    "event": "event emitted → dispatched",
}
# How many may run at once, by definition; a limit of keys counts each key.
LIMITS: Mapping[str, int] = {"limited": 2, "keyed": 1}
HEAVY = "heavy"


@dataclass(frozen=True, slots=True)
class Wait:
    """Something stood still from `start` to `end`; `seconds` of that count."""

    kind: str
    what: str
    start: float
    end: float
    seconds: float


def late(found: Sequence[Wait]) -> list[Violation]:
    return [
        Violation(
            "liveness",
            f"{wait.what} waited {wait.seconds:.1f} s ({MEANINGS[wait.kind]}), at most"
            f" {BOUNDS[wait.kind]:g} s; from {wait.start:.1f} s to {wait.end:.1f} s",
        )
        for wait in sorted(found, key=lambda each: -each.seconds)
        if wait.seconds > BOUNDS[wait.kind]
    ]


def waits(history: History) -> list[Wait]:
    """Every wait of every job, limit, slot and event."""
    measure = _Measure(history)
    return [
        *itertools.chain.from_iterable(measure.job(job) for job in history.jobs),
        *measure.limits(),
        *measure.slots(),
        *measure.events(),
    ]


class _Measure:
    def __init__(self, history: History) -> None:
        self._history = history
        self._jobs = {job.job_id: job for job in history.jobs}
        queues = {job.queue for job in history.jobs}
        self._served = {queue: history.availability.served(queue) for queue in queues}
        self._starts: dict[int, float] = {}
        for attempt in history.attempts:
            self._note_start(attempt)
        self._lost = {self._key(each) for each in history.attempts if each.status == "lost"}
        # Nobody knows when a lost one began.
        self._begun = {
            self._key(each): each.started_at for each in history.attempts if each.status != "lost"
        }
        self._holds: dict[int, list[Hold]] = defaultdict(list)
        for hold in sorted(history.holds, key=lambda each: each.claimed_at):
            self._holds[hold.job_id].append(hold)

    def _note_start(self, attempt: Attempt) -> None:
        known = self._starts.get(attempt.job_id, attempt.started_at)
        self._starts[attempt.job_id] = min(known, attempt.started_at)

    def job(self, job: Job) -> Iterator[Wait]:
        if job.definition in LIMITS:
            return
        kind, ready_at = self._ready(job)
        if ready_at is not None:
            yield self._of_job(job, kind, ready_at, self._start_of(job))
        yield from self._returns(job)

    def _start_of(self, job: Job) -> float:
        return self._starts.get(job.job_id, self._history.ended_at)

    def _ready(self, job: Job) -> tuple[str, float | None]:
        """What the job waits for at first, and since when; None if that has not happened."""
        if job.parents:
            ends = [self._jobs[parent].finished_at for parent in job.parents]
            known = [end for end in ends if end is not None]
            return "parents", max(known) if len(known) == len(ends) else None
        if job.definition == "approved":
            return "approval", job.approved_at
        if job.tenant == HEAVY:
            return "backlog", job.ready_at
        return "delayed" if job.is_delayed else "ready", job.ready_at

    def _of_job(self, job: Job, kind: str, start: float, end: float) -> Wait:
        open_spans = spans.within(self._served[job.queue], start, end)
        counted = spans.without(open_spans, self._broken_holds(job))
        what = f"job {job.job_id} ({job.definition}, {job.tenant})"
        return Wait(kind, what, start, end, spans.length(counted))

    def _broken_holds(self, job: Job) -> Spans:
        """While a worker that had the job was broken; `recovered` bounds how long it kept it."""
        found: list[Span] = []
        for hold in self._holds[job.job_id]:
            found += self._downs_in(hold)
            broke_at = self._broke_at(hold)
            if broke_at is not None and hold.released_at is not None:
                found.append((broke_at, hold.released_at))
        return spans.union(found)

    def _downs_in(self, hold: Hold) -> Spans:
        downs = self._history.availability.downs(hold.worker_id)
        return spans.within(downs, hold.claimed_at, self._end_of(hold))

    def _broke_at(self, hold: Hold) -> float | None:
        """The last time: what a worker survived did not take the job from it."""
        downs = self._downs_in(hold)
        return downs[-1][0] if downs else None

    def _end_of(self, hold: Hold) -> float:
        if hold.released_at is not None:
            return hold.released_at
        finished_at = self._jobs[hold.job_id].finished_at
        return self._history.ended_at if finished_at is None else finished_at

    def _returns(self, job: Job) -> Iterator[Wait]:
        """From each loss, failure or return of a job to the next claim and start."""
        holds = self._holds[job.job_id]
        for number, hold in enumerate(holds):
            broke_at, later = self._broke_at(hold), holds[number + 1 :]
            if hold.released_at is None:
                yield from self._kept(job, hold)
                continue
            again_at = later[0].claimed_at if later else self._history.ended_at
            if broke_at is not None:
                yield self._return(job, "recovered", (broke_at, again_at))
            else:
                kind = "backlog" if job.tenant == HEAVY else "retried"
                yield self._return(job, kind, (hold.released_at, again_at))
            if later and self._key(hold) in self._lost:
                yield self._return(job, "suspect", (again_at, self._begin_of(later)))

    def _begin_of(self, holds: Sequence[Hold]) -> float:
        """When one of these began, however often the job was put back before. Nobody knows when
        one began that was lost, but it was no earlier than a whole run before that."""
        for hold in holds:
            if self._key(hold) in self._lost:
                lost_at = self._broke_at(hold) or self._end_of(hold)
                return max(hold.claimed_at, lost_at - LONGEST_RUN_SECONDS)
            if self._key(hold) in self._begun:
                return self._begun[self._key(hold)]
        return self._history.ended_at

    @staticmethod
    def _key(one: Hold | Attempt) -> tuple[int, int]:
        return one.job_id, one.fence

    def _kept(self, job: Job, hold: Hold) -> Iterator[Wait]:
        """A job that a broken worker still has at the end."""
        broke_at = self._broke_at(hold)
        if job.finished_at is None and broke_at is not None:
            yield self._return(job, "recovered", (broke_at, self._history.ended_at))

    def _return(self, job: Job, kind: str, span: Span) -> Wait:
        counted = spans.within(self._served[job.queue], *span)
        what = f"job {job.job_id} ({job.definition}, {job.tenant})"
        return Wait(kind, what, *span, spans.length(counted))

    def limits(self) -> Iterator[Wait]:
        """From a free place to the next claim under that limit, while a job waited for it."""
        groups: dict[tuple[str, str | None], list[Job]] = defaultdict(list)
        for job in self._history.jobs:
            if job.definition in LIMITS:
                groups[job.definition, job.key].append(job)
        for (name, key), jobs in groups.items():
            label = f"limit {name}" if key is None else f"limit {name} of key {key}"
            yield from self._limit(label, jobs, LIMITS[name])

    def _limit(self, label: str, jobs: Sequence[Job], places: int) -> Iterator[Wait]:
        holds = [hold for job in jobs for hold in self._holds[job.job_id]]
        taken = spans.busy((self._place_of(hold) for hold in holds), places)
        waiting = spans.union(span for job in jobs for span in self._unheld(job))
        idle = spans.without(spans.common(waiting, self._served[jobs[0].queue]), taken)
        claims = sorted(hold.claimed_at for hold in holds)
        for start, end in itertools.pairwise([float("-inf"), *claims, self._history.ended_at]):
            if piece := spans.within(idle, start, end):
                yield Wait("limit", label, piece[0][0], end, spans.length(piece))

    def _place_of(self, hold: Hold) -> Span:
        """A broken worker keeps a place no longer than it may keep the job."""
        end, broke_at = self._end_of(hold), self._broke_at(hold)
        most = end if broke_at is None else max(broke_at, hold.claimed_at) + _RECOVERY_SECONDS
        return hold.claimed_at, min(end, most)

    def _unheld(self, job: Job) -> Iterator[Span]:
        holds = self._holds[job.job_id]
        since = job.ready_at
        for hold in holds:
            yield since, hold.claimed_at
            since = self._end_of(hold)
        if job.finished_at is None:
            yield since, self._history.ended_at

    def slots(self) -> Iterator[Wait]:
        open_spans = self._history.availability.scheduled()
        for slot in self._history.slots:
            counted = spans.within(open_spans, slot.due_at, slot.fired_at)
            what = f"slot of {slot.due_at:.0f} s"
            yield Wait("slot", what, slot.due_at, slot.fired_at, spans.length(counted))

    def events(self) -> Iterator[Wait]:
        open_spans = self._history.availability.scheduled()
        for event in self._history.events:
            end = self._history.ended_at if event.handled_at is None else event.handled_at
            counted = spans.within(open_spans, event.emitted_at, end)
            what = f"event {event.event_id}"
            yield Wait("event", what, event.emitted_at, end, spans.length(counted))
