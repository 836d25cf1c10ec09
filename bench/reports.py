"""The tables a run ends with: every figure with our ratio to it, what was left out, the targets."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from bench.catalogue import OURS, SYSTEMS
from bench.measurements import Measurement, figures, is_better_lower, shown
from bench.targets import Verdict, verdicts


def show(console: Console, measurements: Sequence[Measurement], notes: Iterable[str]) -> None:
    console.print(_figures_table(measurements))
    for note in notes:
        console.print(f"[dim]{note}[/dim]")
    if any(taken.system == OURS for taken in measurements):
        console.print(_targets_table(verdicts(figures(measurements))))


def _figures_table(measurements: Sequence[Measurement]) -> Table:
    systems = [name for name in SYSTEMS if any(m.system == name for m in measurements)]
    table = Table(title="Medians; in brackets how many times as good mainspring is")
    table.add_column("case", no_wrap=True)
    for name in systems:
        table.add_column(SYSTEMS[name].label, justify="right")
    for case, unit in dict.fromkeys((taken.case, taken.unit) for taken in measurements):
        by_system = {taken.system: taken.value for taken in measurements if taken.case == case}
        table.add_row(f"{case} {unit}", *(_cell(by_system, name, unit) for name in systems))
    return table


def _cell(by_system: dict[str, float], name: str, unit: str) -> str:
    if name not in by_system:
        return "-"
    value, ours = by_system[name], by_system.get(OURS)
    if name == OURS or ours is None:
        return shown(value, unit)
    return f"{shown(value, unit)} ({value / ours if is_better_lower(unit) else ours / value:.2f})"


def _targets_table(found: Iterable[Verdict]) -> Table:
    table = Table("target", "", "must", "measured", "met", "aim", "met", title="Targets")
    for verdict in found:
        target = verdict.target
        table.add_row(
            target.case,
            target.against,
            _bound(target.must, is_ceiling=target.is_ceiling),
            "-" if verdict.value is None else f"{verdict.value:.2f}",
            _answer(verdict.is_met),
            _bound(target.aim, is_ceiling=target.is_ceiling),
            _answer(verdict.is_aim_met),
        )
    return table


def _bound(value: float | None, *, is_ceiling: bool) -> str:
    return "" if value is None else f"{'≤' if is_ceiling else '≥'} {value:g}"


def _answer(is_met: bool | None) -> str:
    return {True: "[green]yes[/green]", False: "[red]no[/red]", None: ""}[is_met]
