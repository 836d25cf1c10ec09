"""Long-running processes: their signs of life, and how far their clocks are off."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


class ProcessKind(StrEnum):
    """The role that a process plays; one that plays several has a row for each."""

    WORKER = "worker"
    SCHEDULER = "scheduler"
    SERVER = "server"


class ClockReading(NamedTuple):
    """How far the local clock is ahead of the database's, give or take half the round trip."""

    offset_ms: int
    round_trip_ms: float


def read_clock(sent_at: float, *, database_at: float, round_trip: float) -> ClockReading:
    """Local time less the database's at the middle of a round trip; all three in seconds."""
    offset = sent_at + round_trip / 2 - database_at
    return ClockReading(round(offset * 1000), round(round_trip * 1000, 3))


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What a scheduler or a server says of itself at its start."""

    kind: ProcessKind
    name: str
    host: str
    pid: int
    identity: str
    version: str
    schema_number: int


@dataclass(frozen=True, slots=True)
class Activity:
    """What a scheduler or a server does at the moment; a scheduler has last checked what is due so
    many seconds ago."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    idle_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A long-running process in one of its roles. It is silent if it is not alive: it was killed,
    hangs, or cannot reach the database. A clock offset is local time less the database's."""

    id: int
    kind: ProcessKind
    name: str
    host: str | None
    pid: int | None
    version: str
    schema_number: int | None
    started_at: datetime
    seen_at: datetime
    expires_at: datetime
    is_alive: bool
    clock_offset_ms: int | None
    round_trip_ms: float | None
    is_stopping: bool
    queues: Sequence[str] | None
    """Of a worker."""
    concurrency: int | None
    running: int | None
    leads: bool | None
    """Of a scheduler: whether it is the one that reads what is due."""
    checked_at: datetime | None
    """Of a scheduler: when it last looked for due slots, by the database's clock."""
    address: str | None
    """Of a server that is not mounted in another application."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Process":
        """From the columns of its row, with what it says of itself."""
        facts = row["facts"]
        checked_at = facts.get("checked_at")
        own = {name: row[name] for name in cls.__slots__ if name in row}
        return cls(
            **own,
            id=row["process_id"],
            is_stopping=facts.get("is_stopping", False),
            queues=facts.get("queues"),
            concurrency=facts.get("concurrency"),
            leads=facts.get("leads"),
            checked_at=None if checked_at is None else datetime.fromisoformat(checked_at),
            address=facts.get("address"),
        )


class QueueAge(NamedTuple):
    """Since when the first ready job of a queue has been ready."""

    name: str
    oldest_ready_at: datetime


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """What all processes do together: who leads the scheduling, the event and the jobs that have
    waited for longest, and the database."""

    leader: Process | None
    oldest_event_at: datetime | None
    queues: Sequence[QueueAge]
    database_version: str
    schema_number: int


class Seen(Protocol):
    """A process, here or in a response."""

    @property
    def kind(self) -> ProcessKind: ...

    @property
    def is_alive(self) -> bool: ...


def leader_of(processes: Iterable[Process]) -> Process | None:
    """The living scheduler that leads; behind a pooler all do, and the newest is given."""
    leaders = (each for each in processes if each.is_alive and each.leads)
    return max(leaders, key=lambda process: process.id, default=None)


def missing_kinds(processes: Sequence[Seen], required: Iterable[ProcessKind]) -> list[ProcessKind]:
    """The required kinds of which no process is alive, in order; a kind that is silent is required
    as well, since it was there."""
    seen = {each.kind for each in processes}
    alive = {each.kind for each in processes if each.is_alive}
    wanted = {*required, *seen}
    return [kind for kind in ProcessKind if kind in wanted - alive]
