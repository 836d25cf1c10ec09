"""Findings of the doctor: what was found, what it means, and what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KIB: Final = 1024


class Severity(StrEnum):
    """How urgent a finding is: a note needs no action."""

    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"


_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found by a check; the advice has a command or SQL to copy."""

    id: str
    severity: Severity
    fact: str
    meaning: str
    advice: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing that the doctor has changed, or could not."""

    id: str
    action: str
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """The ids of all checks that were asked for, what they found, worst first, and what was fixed
    before."""

    checked: Sequence[str]
    findings: Sequence[Finding]
    fixes: Sequence[Fix] = ()


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: (_ORDER[each.severity], each.id))


def exit_code(severities: Iterable[str]) -> int:
    """0 if nothing needs action, 1 for warnings, 2 for something critical."""
    found = set(severities)
    if Severity.CRITICAL in found:
        return 2
    return 1 if Severity.WARNING in found else 0


def problems(
    findings: Iterable[Finding], *, ignore: Sequence[str] = (), fail_on: Severity
) -> list[str]:
    """A sentence for each finding that is as urgent as `fail_on` or more, with what to do."""
    return [
        f"{each.id}: {each.fact}; {each.advice}"
        for each in findings
        if _ORDER[each.severity] <= _ORDER[fail_on] and each.id not in ignore
    ]


def as_facts(report: Report) -> dict[str, Any]:
    """The same as a result of a job; the problems are warnings and worse."""
    return {
        "problems": problems(report.findings, fail_on=Severity.WARNING),
        "findings": [asdict(each) for each in report.findings],
        "checked": list(report.checked),
    }


def graded(value: float, warning: float, critical: float) -> Severity | None:
    """Critical or a warning above the bounds; None at or below both."""
    if value > critical:
        return Severity.CRITICAL
    return Severity.WARNING if value > warning else None


def span(seconds: float) -> str:
    """A duration in its largest sensible unit."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} seconds"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} minutes"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.1f} hours"
    return f"{seconds / _DAY:.0f} days"


def size(count: float) -> str:
    """Bytes in their largest sensible unit."""
    units = ("bytes", "KiB", "MiB", "GiB")
    for unit in units:
        if count < 10 * _KIB or unit == units[-1]:
            break
        count /= _KIB
    return f"{count:,.0f} {unit}"


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def several(names: Sequence[str], most: int = 5) -> str:
    """The first of many names."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
