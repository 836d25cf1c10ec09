"""The order of a run: round by round, case by case, the systems of a case one after the other, so
that whatever else the machine does falls on all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.benches import Bench
from bench.cases import CASES, ONLY_OURS, SCHEDULED, WITHOUT_RIVALS
from bench.catalogue import OURS, System
from bench.measurements import Measurement, shown
from bench.processes import ProcessFailed


@dataclass(frozen=True, slots=True)
class Plan:
    systems: Sequence[System]
    cases: Sequence[str]
    rounds: int


@dataclass(slots=True)
class Outcome:
    measurements: list[Measurement] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    """What was not measured and why, each said once."""


def run(bench: Bench, plan: Plan, say: Callable[[str], None]) -> Outcome:
    outcome = Outcome()
    for turn, case, system in _steps(plan, outcome):
        say(f"round {turn + 1} of {plan.rounds}: {case}, {system.name}")
        try:
            taken = CASES[case](bench, system)
        except (ProcessFailed, TimeoutError) as error:
            outcome.notes[f"{system.name}, {case}: failed: {error}"] = None
            continue
        outcome.measurements.extend(taken)
        say("  " + ", ".join(f"{m.case} {shown(m.value, m.unit)} {m.unit}" for m in taken))
    return outcome


def _steps(plan: Plan, outcome: Outcome) -> Iterator[tuple[int, str, System]]:
    for turn in range(plan.rounds):
        for place, case in enumerate(plan.cases):
            for system in _rotated(plan.systems, turn + place):
                if reason := _omission(system, case):
                    outcome.notes[reason] = None
                else:
                    yield turn, case, system


def _rotated(systems: Sequence[System], turn: int) -> list[System]:
    # A system's place in the order must not favour it in every round, nor whenever a case is
    # measured again.
    shift = turn % len(systems)
    return [*systems[shift:], *systems[:shift]]


def _omission(system: System, case: str) -> str | None:
    if reason := system.absence():
        return f"{system.name}: not measured: {reason}"
    if (case in ONLY_OURS and system.name != OURS) or (case in WITHOUT_RIVALS and system.is_rival):
        return f"{case}: not measured for rivals"
    if case in SCHEDULED and system.schedules is None:
        return f"{system.name}: its schedules are not measured"
    if case not in SCHEDULED and not system.is_queue:
        return f"{system.name}: only its schedules are measured, as it has no queue"
    if reason := system.omitted.get(case):
        return f"{system.name}, {case}: not measured: {reason}"
    return None
