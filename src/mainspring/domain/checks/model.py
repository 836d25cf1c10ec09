"""Findings of the doctor: what was found, what it means, and what to do about it."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


# The result and the error of a job are seen by its whole tenant, so they have nothing of what was
# found but how urgent it is and what it means: the facts name other tenants' queues and schedules.


def problems(
    findings: Iterable[Finding], *, ignore: Sequence[str] = (), fail_on: Severity
) -> list[str]:
    """A sentence for each kind of finding that is as urgent as `fail_on` or more."""
    chosen = (
        f"{each.id} ({each.severity}): {each.meaning}; see `mainspring doctor --only {each.id}`"
        for each in findings
        if _ORDER[each.severity] <= _ORDER[fail_on] and each.id not in ignore
    )
    return list(dict.fromkeys(chosen))


def as_facts(report: Report) -> dict[str, Any]:
    """The same as a result of a job; the problems are warnings and worse."""
    counts = Counter((each.id, each.severity) for each in report.findings)
    return {
        "problems": problems(report.findings, fail_on=Severity.WARNING),
        "findings": [
            {"id": check, "severity": severity, "count": count}
            for (check, severity), count in counts.items()
        ],
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


def identifier(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def word(name: str) -> str:
    """A name as one word of a shell: whoever copies a command runs nothing else."""
    return shlex.quote(name)


def several(names: Sequence[str], most: int = 5) -> str:
    """The first of many names."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
