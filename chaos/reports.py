"""What a run prints: a line a seed, and tables that can be pasted into docs/guarantees.md."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaos.checks import Violation
from chaos.histories import Window
from chaos.operations import Fate
from chaos.shares import most_before
from chaos.waits import BOUNDS, MEANINGS

_SHOWN = 40


@dataclass
class Result:
    """What one seed gave."""

    seed: int
    windows: list[Window] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)
    most_before: int = 0
    looks: int = 0
    seconds: float = 0.0
    counted_seconds: float = 0.0
    quiet_after: float = 0.0
    violations: list[Violation] = field(default_factory=list)


def summary(result: Result) -> str:
    fates = ", ".join(f"{count:,} {fate}" for fate, count in sorted(result.fates.items()))
    told = (
        f"seed {result.seed}: {sum(result.operations.values()):,} operations ({fates}),"
        f" {len(result.windows)} faults, {result.counted_seconds:.0f} of {result.seconds:.0f} s"
        f" counted, quiet after {result.quiet_after:.1f} s, {len(result.violations)} violations"
    )
    found = [f"  promise {each.promise}: {each.text}" for each in result.violations[:_SHOWN]]
    return "\n".join([told, *found])


def tables(results: Sequence[Result]) -> str:
    return "\n".join(
        [
            "\n### Measured by `make chaos`",
            _totals(results),
            _isolation(results),
            "",
            *_table(("what waits", "times", "worst", "at most"), _wait_rows(results)),
            "",
            *_table(("fault", "times"), _counted(w.fault for r in results for w in r.windows)),
            "",
            *_table(("operation", "times"), _sums(r.operations for r in results)),
        ]
    )


def _totals(results: Sequence[Result]) -> str:
    seconds = sum(result.seconds for result in results)
    counted = sum(result.counted_seconds for result in results)
    operations = sum(sum(result.operations.values()) for result in results)
    committed = sum(result.fates[Fate.COMMITTED] for result in results)
    faults = sum(len(result.windows) for result in results)
    found = sum(len(result.violations) for result in results)
    seeds = (
        f"seed {results[0].seed}"
        if len(results) == 1
        else (f"seeds {results[0].seed} to {results[-1].seed}")
    )
    return (
        f"{seeds.capitalize()}, {seconds / 60:.1f} minutes, {faults:,} faults, {operations:,}"
        f" operations of which {committed:,} were committed: {found:,} violations. The clock of a"
        f" job ran for {counted / seconds:.0%} of the time; for the rest the database was away or"
        " no worker was live."
    )


def _isolation(results: Sequence[Result]) -> str:
    most, looks = max(r.most_before for r in results), sum(r.looks for r in results)
    return (
        f"At most {most:,} jobs of the heavy tenant started before a job of the light one (bound:"
        f" {most_before(1, 3):g} for one job). The light tenant was shown {looks:,} jobs."
    )


def _wait_rows(results: Sequence[Result]) -> Iterable[tuple[str, str, str, str]]:
    for kind, bound in BOUNDS.items():
        times = sum(result.waits[kind] for result in results)
        worst = max(result.worst.get(kind, 0.0) for result in results)
        yield MEANINGS[kind], f"{times:,}", f"{worst:.1f} s", f"{bound:.1f} s"


def _counted(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((name, f"{times:,}") for name, times in Counter(names).most_common())


def _sums(counters: Iterable[Counter[str]]) -> Iterable[tuple[str, str]]:
    total: Counter[str] = Counter()
    for counter in counters:
        total += counter
    return ((name, f"{times:,}") for name, times in total.most_common())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join(['---', *['---:'] * (len(heads) - 1)])}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
