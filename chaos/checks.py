"""What must hold of everything that happened, whatever broke: pure rules over a history."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chaos.histories import Attempt, History

_SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Violation:
    promise: str
    text: str


JOBS_PER_OPERATION: Mapping[str, int] = {"flow": 4, "burst": 300}


def violations(history: History) -> list[Violation]:
    """Everything that breaks a promise."""
    rules = (
        _enqueues,
        _ends,
        _fences,
        _effects,
        _slots,
        _events,
        _limits,
        _flows,
        _tenants,
        _servers,
    )
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
    counts = Counter(effect.job_id for effect in history.effects)
    for job in history.jobs:
        if job.definition == "once":
            wanted = 1 if job.state == _SUCCEEDED else 0
            if counts[job.job_id] != wanted:
                yield Violation("4", f"job {job.job_id} has {counts[job.job_id]} effects")


def _slots(history: History) -> Iterator[Violation]:
    """3: one job a slot, every second has its slot."""
    jobs = Counter(slot.job_id for slot in history.slots if slot.job_id is not None)
    yield from (
        Violation("3", f"job {job_id} belongs to {count} slots")
        for job_id, count in jobs.items()
        if count > 1
    )
    ticks = sum(job.definition == "tick" for job in history.jobs)
    if ticks != len(jobs):
        yield Violation("3", f"{ticks} jobs of the schedule for {len(jobs)} slots")
    instants = sorted(round(slot.due_at) for slot in history.slots)
    yield from (
        Violation("3, 6", f"no slot between {a} s and {b} s")
        for a, b in itertools.pairwise(instants)
        if b - a > 1
    )


def _events(history: History) -> Iterator[Violation]:
    """Every event is dispatched, once."""
    for event in history.events:
        if event.handled_at is None:
            yield Violation("6", f"event {event.event_id} was never dispatched")
        elif event.jobs != 1:
            yield Violation("2", f"event {event.event_id} has {event.jobs} jobs")


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


def _tenants(history: History) -> Iterator[Violation]:
    """5: a job belongs to, and runs for, the tenant that asked for it; nobody else sees it."""
    tenants = {job.job_id: job.tenant for job in history.jobs}
    for job in history.jobs:
        wanted = history.tenants.get(job.n, job.tenant) if job.n is not None else job.tenant
        if job.tenant != wanted:
            yield Violation("5", f"job {job.job_id} of tenant {wanted} belongs to {job.tenant}")
    for effect in history.effects:
        owner = tenants.get(effect.job_id, effect.tenant)
        if effect.tenant != owner:
            yield Violation("5", f"job {effect.job_id} of tenant {owner} ran for {effect.tenant}")
    yield from (Violation("5", text) for text in sorted(set(history.leaks)))


def _servers(history: History) -> Iterator[Violation]:
    """6: no scheduler or server ends by itself, and the server answers."""
    for name, crashes in history.crashes.items():
        if crashes:
            yield Violation("6", f"{name} ended by itself {crashes} times")
    if not history.looks:
        yield Violation("5, 6", "the light tenant was never shown a job")
