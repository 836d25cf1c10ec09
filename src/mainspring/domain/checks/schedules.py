"""Whether schedules and triggers do what they are for: D35 to D37, D40."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mainspring.domain.checks.model import Finding, Severity, graded, several, span, word

_OVERDUE_SECONDS, _TOO_OVERDUE_SECONDS = 60, 600
_FEW_RUNS = 3
_HERD = 10
_UNHANDLED_SECONDS = 60
_FEW_DISPATCHES = 3


@dataclass(frozen=True, slots=True)
class Overdue:
    """Schedules whose next run should have fired."""

    count: int
    name: str
    tenant: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BrokenSchedule:
    """A schedule with what is wrong with it: `disabled`, `definition` or `unsuccessful`."""

    name: str
    tenant: str
    fault: str
    detail: str


@dataclass(frozen=True, slots=True)
class Herd:
    """Schedules that run in the same second, and how many jobs live workers can run at once."""

    at: datetime
    count: int
    places: int


@dataclass(frozen=True, slots=True)
class LongRun:
    """A schedule whose usual run takes longer than the time to its next."""

    name: str
    tenant: str
    run_seconds: float
    gap_seconds: float
    runs: int


@dataclass(frozen=True, slots=True)
class UnhandledEvents:
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FailingTrigger:
    """A trigger whose newest dispatches have all failed."""

    name: str
    tenant: str
    failed: int
    error: str


def overdue(known: Overdue | None) -> list[Finding]:
    if known is None:
        return []
    severity = graded(known.seconds, _OVERDUE_SECONDS, _TOO_OVERDUE_SECONDS)
    if severity is None:
        return []
    return [
        Finding(
            "D35",
            severity,
            f"{known.count:,} schedules are overdue, {known.name} of tenant {known.tenant} by "
            f"{span(known.seconds)}",
            "no scheduler runs, or it cannot keep up",
            "mainspring scheduler",
        )
    ]


def broken(schedules: Sequence[BrokenSchedule]) -> list[Finding]:
    return [_broken(each) for each in schedules]


def _target(name: str, tenant: str) -> str:
    """The thing of a tenant, as commands name it."""
    return f"{word(name)} --tenant {word(tenant)}"


def _broken(schedule: BrokenSchedule) -> Finding:
    name = f"schedule {schedule.name} of tenant {schedule.tenant}"
    target = _target(schedule.name, schedule.tenant)
    show = f"mainspring schedules show {target}"
    match schedule.fault:
        case "disabled":
            fact = f"{name} was disabled: {schedule.detail}"
            meaning = "it does not run until someone enables it"
            advice = f"mainspring schedules enable {target}"
        case "definition":
            fact = f"{name} is enabled, and its definition {schedule.detail}"
            meaning, advice = "its slots fail", show
        case _:
            fact = f"{name} has never succeeded in {schedule.detail} runs"
            meaning, advice = "it does not do its work", show
    return Finding("D35", Severity.WARNING, fact, meaning, advice)


def herds(known: Sequence[Herd]) -> list[Finding]:
    return [
        Finding(
            "D36",
            Severity.NOTE,
            f"{each.count:,} schedules run in the same second, at "
            f"{each.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, "
            f"and live workers have {each.places:,} places",
            "most of these jobs wait for the others",
            "give them a jitter, or H instead of a number in their cron expressions",
        )
        for each in known
        if each.count > max(_HERD, each.places)
    ]


def long_runs(known: Sequence[LongRun]) -> list[Finding]:
    return [
        Finding(
            "D37",
            Severity.WARNING,
            f"schedule {each.name} of tenant {each.tenant} runs for {span(each.run_seconds)} on "
            f"average and is due every {span(each.gap_seconds)}",
            "its runs overlap, or are skipped",
            f"mainspring schedules show {_target(each.name, each.tenant)}  -- then let it run "
            "less often",
        )
        for each in known
        if each.runs > _FEW_RUNS and each.run_seconds > each.gap_seconds
    ]


def events(waiting: UnhandledEvents, triggers: Sequence[FailingTrigger]) -> list[Finding]:
    found = []
    if waiting.seconds > _UNHANDLED_SECONDS:
        fact = f"{waiting.count:,} events wait, the oldest for {span(waiting.seconds)}"
        meaning = "no scheduler runs, which dispatches events, or it cannot keep up"
        found.append(Finding("D40", Severity.WARNING, fact, meaning, "mainspring scheduler"))
    names = [f"{each.name} ({each.tenant})" for each in triggers if each.failed >= _FEW_DISPATCHES]
    if names:
        error = next(each.error for each in triggers if each.failed >= _FEW_DISPATCHES)
        fact = f"triggers that failed every time: {several(names)}; the last error: {error}"
        first = next(each for each in triggers if each.failed >= _FEW_DISPATCHES)
        meaning = "their events lead to no job"
        advice = f"mainspring triggers show {_target(first.name, first.tenant)}"
        found.append(Finding("D40", Severity.WARNING, fact, meaning, advice))
    return found
