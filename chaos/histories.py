"""What happened in one run, as values; times are seconds since its beginning.

Everything runs on one host, so the database and the program that breaks it share a clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos import spans
from chaos.spans import Spans

# What one process needs to find the database again: the longest pause between two tries, and one.
RECONNECT_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is at the end; `ready_at` is when it was enqueued, or is due if that is later."""

    job_id: int
    definition: str
    state: str
    waits_for: str | None
    n: int | None
    ready_at: float
    finished_at: float | None
    parents: Sequence[int] = ()
    error: str | None = None
    tenant: str = "default"
    queue: str = "default"
    key: str | None = None
    approved_at: float | None = None
    is_delayed: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    job_id: int
    fence: int
    status: str
    started_at: float
    finished_at: float


@dataclass(frozen=True, slots=True)
class Hold:
    """A worker had a job from its claim until it was released; None if it kept it to its end."""

    job_id: int
    worker_id: int
    claimed_at: float
    released_at: float | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    due_at: float
    fired_at: float
    outcome: str
    job_id: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event with the number of its jobs; `handled_at` is None if nobody dispatched it."""

    event_id: int
    emitted_at: float
    handled_at: float | None
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Effect:
    """What a handler wrote with its success, and the tenant that it was told."""

    job_id: int
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class Window:
    """While something was broken."""

    fault: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process: whose jobs it takes, and when it was live, unpaused and connected."""

    name: str
    queues: frozenset[str]
    worker_ids: frozenset[int]
    up: Spans


@dataclass(frozen=True, slots=True)
class Availability:
    """When work could go on."""

    workers: Sequence[Worker] = ()
    schedulers: Sequence[Spans] = ()
    database_away: Spans = ()

    def served(self, queue: str) -> Spans:
        """While the database answered and a live worker served the queue."""
        ups = [up for worker in self.workers if queue in worker.queues for up in worker.up]
        return spans.without(spans.union(ups), self._without_database())

    def scheduled(self) -> Spans:
        """While the database answered and a scheduler was live."""
        ups = [up for each in self.schedulers for up in each]
        return spans.without(spans.union(ups), self._without_database())

    def downs(self, worker_id: int) -> Spans:
        """When that worker was not there; never, if it is unknown."""
        for worker in self.workers:
            if worker_id in worker.worker_ids:
                return spans.gaps(worker.up)
        return ()

    def _without_database(self) -> Spans:
        return spans.union((start, end + RECONNECT_SECONDS) for start, end in self.database_away)


@dataclass(slots=True)
class History:
    """What callers were told, what the database holds and when it could go on."""

    committed: Mapping[int, str]
    rolled_back: set[int]
    jobs: Sequence[Job]
    attempts: Sequence[Attempt]
    effects: Sequence[Effect]
    holds: Sequence[Hold] = ()
    slots: Sequence[Slot] = ()
    events: Sequence[Event] = ()
    tenants: Mapping[int, str] = field(default_factory=dict)
    leaks: Sequence[str] = ()
    looks: int = 1
    crashes: Mapping[str, int] = field(default_factory=dict)
    most_limited: int = 0
    most_keyed: int = 0
    ended_at: float = 0.0
    availability: Availability = field(default_factory=Availability)
