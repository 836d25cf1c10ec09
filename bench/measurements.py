"""Figures, their medians over the rounds, and the file they are kept in."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

JOBS_PER_SECOND: Final = "jobs/s"
JOBS: Final = "jobs"
SLOTS_PER_SECOND: Final = "slots/s"
MILLISECONDS: Final = "ms"
MEBIBYTES: Final = "MiB"
SECONDS: Final = "s"
RATIO: Final = "ratio"
REQUESTS_PER_SECOND: Final = "requests/s"
_STEADY: Final = 1.5
_WORST: Final = "_worst"

Figures = Mapping[tuple[str, str], float]
"""Medians by case and system; of a worst case the worst."""


@dataclass(frozen=True, slots=True)
class Measurement:
    case: str
    system: str
    value: float
    unit: str


def medians(measurements: Iterable[Measurement]) -> list[Measurement]:
    """One measurement a case and system, in the order they were first measured."""
    return [
        Measurement(case, system, round(_together(case, values), 3), unit)
        for (case, system, unit), values in _rounds(measurements).items()
    ]


def _together(case: str, values: list[float]) -> float:
    # The median of what was worst in each round would hide the worst of all.
    return max(values) if case.endswith(_WORST) else statistics.median(values)


def unsteady(measurements: Iterable[Measurement]) -> list[str]:
    """The figures whose rounds disagree so much that a ratio of medians says little."""
    return [
        f"{case}, {system}: the rounds range from {min(values):,.1f} to {max(values):,.1f} {unit}"
        for (case, system, unit), values in _rounds(measurements).items()
        if max(values) > min(values) * _STEADY
    ]


def _rounds(measurements: Iterable[Measurement]) -> dict[tuple[str, str, str], list[float]]:
    rounds: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for taken in measurements:
        rounds[taken.case, taken.system, taken.unit].append(taken.value)
    return rounds


def figures(measurements: Iterable[Measurement]) -> Figures:
    return {(taken.case, taken.system): taken.value for taken in measurements}


def write(path: Path, measurements: Iterable[Measurement]) -> None:
    text = json.dumps([asdict(taken) for taken in measurements], indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def is_better_lower(unit: str) -> bool:
    return unit in {JOBS, MILLISECONDS, MEBIBYTES}


def shown(value: float, unit: str) -> str:
    if unit == RATIO:
        return f"{value:.2f}"
    return f"{value:,.1f}" if is_better_lower(unit) else f"{value:,.0f}"
