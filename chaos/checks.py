"""What must hold of everything that happened, whatever broke: pure rules over a history.

Times are seconds since the beginning, by the database's clock.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is at the end."""

    job_id: int
    definition: str
    state: str
    waits_for: str | None
    n: int | None
    ready_at: float
    finished_at: float | None
    parents: Sequence[int] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    job_id: int
    fence: int
    status: str
    started_at: float
    finished_at: float


@dataclass(frozen=True, slots=True)
class Window:
    """While something was broken."""

    fault: str
    start: float
    end: float


@dataclass(slots=True)
class History:
    """What callers were told and what the database holds."""

    committed: Mapping[int, str]
    rolled_back: set[int]
    jobs: Sequence[Job]
    attempts: Sequence[Attempt]
    effects: Sequence[int]
    slots: Sequence[tuple[float, str, int | None]] = ()
    events: Mapping[int, int] = field(default_factory=dict)
    undispatched: Sequence[int] = ()
    most_limited: int = 0
    most_keyed: int = 0


@dataclass(frozen=True, slots=True)
class Violation:
    promise: str
    text: str


JOBS_PER_OPERATION: Mapping[str, int] = {"flow": 4, "event": 1}


def violations(history: History) -> list[Violation]:
    """Everything that breaks a promise."""
    rules = (_enqueues, _ends, _fences, _effects, _slots, _events, _limits, _flows)
    return [violation for rule in rules for violation in rule(history)]


def _enqueues(history: History) -> Iterator[Violation]:
    """1: committed is there, rolled back is not."""
    found = Counter(job.n for job in history.jobs if job.n is not None)
    for n, kind in history.committed.items():
        wanted = JOBS_PER_OPERATION.get(kind, 1)
        if found[n] != wanted:
            yield Violation("1", f"{kind} {n} was committed and has {found[n]} jobs, not {wanted}")
    for n in sorted(history.rolled_back & found.keys()):
        yield Violation("1", f"operation {n} was rolled back and has {found[n]} jobs")


def _ends(history: History) -> Iterator[Violation]:
    """2 and liveness: every job ends, and ends well, unless it kills its process."""
    for job in history.jobs:
        wanted = "dead_letter" if job.definition == "poison" else _SUCCEEDED
        if job.state != wanted:
            waits = f", waits for {job.waits_for}" if job.waits_for else ""
            yield Violation(
                "2, 6",
                f"job {job.job_id} ({job.definition}) is {job.state}{waits}, not {wanted}"
                f"{f': {job.error}' if job.error else ''}",
            )


def _fences(history: History) -> Iterator[Violation]:
    """2: one success, that of the newest lease."""
    by_job: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in history.attempts:
        by_job[attempt.job_id].append(attempt)
    for job in history.jobs:
        attempts = by_job[job.job_id]
        good = [attempt for attempt in attempts if attempt.status == _SUCCEEDED]
        if job.state == _SUCCEEDED and len(good) != 1:
            yield Violation("2", f"job {job.job_id} succeeded {len(good)} times")
        if good and good[-1].fence != max(attempt.fence for attempt in attempts):
            yield Violation("2", f"job {job.job_id}: an older lease reported success")


def _effects(history: History) -> Iterator[Violation]:
    """4: one effect for each success, none without."""
    counts = Counter(history.effects)
    for job in history.jobs:
        if job.definition == "once":
            wanted = 1 if job.state == _SUCCEEDED else 0
            if counts[job.job_id] != wanted:
                yield Violation("4", f"job {job.job_id} has {counts[job.job_id]} effects")


def _slots(history: History) -> Iterator[Violation]:
    """3: one job a slot, every second has its slot."""
    jobs = Counter(job_id for _, _, job_id in history.slots if job_id is not None)
    yield from (
        Violation("3", f"job {job_id} belongs to {count} slots")
        for job_id, count in jobs.items()
        if count > 1
    )
    ticks = sum(job.definition == "tick" for job in history.jobs)
    if ticks != len(jobs):
        yield Violation("3", f"{ticks} jobs of the schedule for {len(jobs)} slots")
    instants = sorted(round(at) for at, _, _ in history.slots)
    yield from (
        Violation("3, 6", f"no slot between {a} s and {b} s")
        for a, b in itertools.pairwise(instants)
        if b - a > 1
    )


def _events(history: History) -> Iterator[Violation]:
    """Every event is dispatched, once."""
    for event_id in history.undispatched:
        yield Violation("6", f"event {event_id} was never dispatched")
    for event_id, jobs in history.events.items():
        if jobs != 1:
            yield Violation("2", f"event {event_id} has {jobs} jobs")


def _limits(history: History) -> Iterator[Violation]:
    if history.most_limited > 2:
        yield Violation("limits", f"{history.most_limited} ran under a limit of 2")
    if history.most_keyed > 1:
        yield Violation("limits", f"{history.most_keyed} ran under a limit of 1 a key")


def _flows(history: History) -> Iterator[Violation]:
    """A child starts after its parents have succeeded."""
    ended = {job.job_id: job.finished_at for job in history.jobs}
    first: dict[int, float] = {}
    for attempt in history.attempts:
        first[attempt.job_id] = min(
            first.get(attempt.job_id, attempt.started_at), attempt.started_at
        )
    for job in history.jobs:
        late = [
            parent
            for parent in job.parents
            if job.job_id in first and (ended.get(parent) or 0.0) > first[job.job_id]
        ]
        if late:
            yield Violation("flows", f"job {job.job_id} started before its parents {late} ended")


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a job that could run waited after the last fault that touched it was over."""

    job_id: int
    definition: str
    seconds: float
    fault: str | None


# These wait for something else than a worker.
_WAITERS = frozenset({"limited", "keyed", "step", "approved", "tick"})


def waits(history: History, windows: Iterable[Window]) -> Iterator[Wait]:
    """The wait of each job for its first start, and of each lost attempt for the next one."""
    known = list(windows)
    by_job: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in sorted(history.attempts, key=lambda each: each.started_at):
        by_job[attempt.job_id].append(attempt)
    for job in history.jobs:
        attempts = by_job[job.job_id]
        if attempts and job.definition not in _WAITERS:
            yield _wait(job, job.ready_at, attempts[0].started_at, known)
        for lost, after in itertools.pairwise(attempts):
            if lost.status == "lost":
                yield _wait(job, lost.finished_at, after.started_at, known)


def _wait(job: Job, ready_at: float, started_at: float, windows: Sequence[Window]) -> Wait:
    touching = [each for each in windows if each.start <= started_at and each.end >= ready_at]
    last = max(touching, key=lambda each: each.end, default=None)
    began = max(ready_at, min(last.end, started_at)) if last else ready_at
    return Wait(job.job_id, job.definition, started_at - began, last.fault if last else None)
