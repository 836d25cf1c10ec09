"""Whether the queue moves: D31 to D34, D39, D43."""

from collections.abc import Sequence
from dataclasses import dataclass

from mainspring.domain.batches import Aside
from mainspring.domain.checks.model import Finding, Severity, several, span, word

_STUCK_SECONDS = 30
_UNHANDLED_SECONDS = 300
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Orphans:
    """Running jobs whose worker is unknown or done with."""

    count: int
    first: int | None


@dataclass(frozen=True, slots=True)
class StuckWait:
    """Jobs whose wait should have ended so many seconds ago; `wait` is what they wait for, and
    `definitions` are those that wait for a handler."""

    wait: str
    count: int
    first: int
    seconds: float
    definitions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class UnservedQueue:
    queue: str
    tenant: str
    first: int


@dataclass(frozen=True, slots=True)
class Unhandled:
    """Jobs that wait for a worker which knows their definition."""

    definition: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LiveWorker:
    name: str
    host: str
    version: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Losses:
    """Of the last 24 hours."""

    lost: int
    late: int


def orphans(known: Orphans) -> list[Finding]:
    if not known.count:
        return []
    return [
        Finding(
            "D31",
            Severity.WARNING,
            f"{known.count:,} running jobs, such as {known.first}, have no worker",
            "nobody takes them back, so they would run for ever",
            "mainspring doctor --fix --only D31",
        )
    ]


def stuck_waits(waits: Sequence[StuckWait], asides: Sequence[Aside], workers: int) -> list[Finding]:
    """Without a live worker it is no wonder that nothing ends a wait."""
    found = []
    for each in waits:
        if each.seconds <= _STUCK_SECONDS:
            continue
        fact = (
            f"{each.count:,} jobs, such as {each.first}, still wait for {_WAITS[each.wait]}, "
            f"{span(each.seconds)} after that has come"
        )
        advice = "mainspring doctor --fix --only D32"
        if workers:
            meaning = "workers should have ended these waits; please report it to us"
            found.append(Finding("D32", Severity.CRITICAL, fact, meaning, advice))
        else:
            meaning = "no worker is alive, and workers end waits; start one with mainspring worker"
            found.append(Finding("D32", Severity.WARNING, fact, meaning, advice))
    return found + [_aside(each) for each in asides]


_WAITS = {
    "time": "their time",
    "turn": "their turn",
    "parents": "their parents",
    "handler": "a worker that knows their definition",
}


def _aside(aside: Aside) -> Finding:
    return Finding(
        "D32",
        Severity.WARNING,
        f"job {aside.key} was set aside by {aside.duty} {aside.tries} times: {aside.reason}",
        "it cannot be processed, and is tried again now and then",
        f"mainspring jobs show {aside.key}  -- then mend it, or delete it",
    )


def unserved(queues: Sequence[UnservedQueue], workers: Sequence[LiveWorker]) -> list[Finding]:
    found = [
        Finding(
            "D33",
            Severity.WARNING,
            f"queue {each.queue} has ready jobs, such as {each.first} of tenant {each.tenant}, "
            "and no live worker serves it",
            "they wait until one does",
            f"mainspring worker --queues {word(each.queue)}",
        )
        for each in queues
    ]
    if len(workers) == 1:
        found.append(
            Finding(
                "D33",
                Severity.NOTE,
                f"there is one live worker, {workers[0].name}",
                "nothing runs while it restarts",
                "mainspring worker  -- a second one, on another host",
            )
        )
    return found


def unhandled(known: Sequence[Unhandled]) -> list[Finding]:
    return [
        Finding(
            "D34",
            Severity.WARNING,
            f"{each.count:,} jobs of {each.definition} wait for a worker that knows it, the oldest "
            f"for {span(each.seconds)}",
            "no live worker has this definition",
            f"deploy a worker that has it, or: mainspring definitions show {word(each.definition)}",
        )
        for each in known
        if each.seconds > _UNHANDLED_SECONDS
    ]


def losses(known: Losses) -> list[Finding]:
    if not known.lost and not known.late:
        return []
    return [
        Finding(
            "D39",
            Severity.WARNING,
            f"{known.lost:,} attempts lost their worker and {known.late:,} reported too late in "
            "the last 24 hours",
            "workers died or were blocked for longer than their lease",
            "mainspring jobs list --state dead_letter  -- and look for lease_lost in their logs; "
            "a longer lease_seconds tolerates more",
        )
    ]


def versions(workers: Sequence[LiveWorker]) -> list[Finding]:
    found = []
    since = {
        version: max(each.seconds for each in workers if each.version == version)
        for version in {each.version for each in workers}
    }
    if len(since) > 1 and min(since.values()) > _DAY:
        found.append(
            Finding(
                "D43",
                Severity.WARNING,
                f"live workers have had the versions {several(sorted(since))} for more than a day",
                "an upgrade was not rolled out to all of them",
                "mainspring workers list",
            )
        )
    hosts = {each.host for each in workers}
    if len(workers) > 1 and len(hosts) == 1:
        found.append(
            Finding(
                "D43",
                Severity.NOTE,
                f"all {len(workers)} live workers are on the host {hosts.pop()}",
                "nothing runs while that host is down",
                "mainspring worker  -- on another host",
            )
        )
    return found
