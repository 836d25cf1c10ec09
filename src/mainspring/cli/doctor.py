"""`mainspring doctor`: Find out what is wrong with the database."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Annotated, Any

import typer
from rich.text import Text

from mainspring.api.models.doctor import FindingModel, FixModel, ReportModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.errors import print_error
from mainspring.cli.examples import example
from mainspring.cli.listings import NO_CONTROLS, Cell, Listing, is_piped
from mainspring.cli.output import Out, console, remark
from mainspring.client import Client
from mainspring.domain.checks.model import Severity, exit_code
from mainspring.domain.errors import MainspringError

app = typer.Typer()

COULD_NOT_LOOK = 3
_INDENT = " " * 5
_NARROWEST = 40
_STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def _looking(command: Callable[..., None]) -> Callable[..., None]:
    """Exit with 3 if nothing could be examined."""

    @wraps(command)
    def run(**given: Any) -> None:
        try:
            command(**given)
        except MainspringError as error:
            print_error(error)
            raise typer.Exit(COULD_NOT_LOOK) from None

    return run


@app.command(epilog=example("mainspring doctor", "mainspring doctor --fix --only D13"))
@_looking
@connected
def doctor(
    client: Client,
    out: Out,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this check, e.g. D13; repeatable.")
    ] = None,
    is_fix: Annotated[
        bool, typer.Option("--fix", help="Fix first what needs no judgement.")
    ] = False,
) -> None:
    """Find out what is wrong with the database.

    Says what each finding means and which command or SQL to run. Operators only.

    Exits with 0 if nothing needs action, 1 for warnings, 2 for critical findings, and 3 if the
    database could not be examined.
    """
    act = client.doctor.fix if is_fix else client.doctor.examine
    report = act(only=only or ())
    out.show(report, _print)
    code = exit_code(each.severity for each in report.findings)
    if code:
        raise typer.Exit(code)


def _print(report: ReportModel) -> None:
    if is_piped(console):
        console.print(FINDINGS([*report.fixes, *report.findings]))
    else:
        for fix in report.fixes:
            console.print(_fixed(fix))
        for finding in report.findings:
            for line in _lines(finding):
                console.print(line)
    remark(_summary(report))


def _fixed(fix: FixModel) -> Text:
    done = ("fixed ", "green") if fix.is_done else ("not fixed ", "red")
    return Text.assemble(f"{fix.id}  ", done, fix.action)


def _lines(finding: FindingModel) -> Iterator[Text | str]:
    """The fact and its meaning in lines that fit; the advice in one, so that it can be copied. None
    has a control character, since others choose the names in them."""
    yield Text.assemble(f"{finding.id}  ", (finding.severity, _STYLES[finding.severity]))
    for text in (finding.fact, finding.meaning):
        yield from _wrapped(text)
    yield Text(f"{_INDENT}{finding.advice}".translate(NO_CONTROLS), style="bold")
    yield ""


def _wrapped(text: str) -> list[str]:
    width = max(console.width, _NARROWEST)
    return textwrap.wrap(
        text.translate(NO_CONTROLS), width, initial_indent=_INDENT, subsequent_indent=_INDENT
    )


def _summary(report: ReportModel) -> str:
    counts = Counter(each.severity for each in report.findings)
    said = ", ".join(_count(counts[each], each) for each in _STYLES)
    return f"{_count(len(report.checked), 'check')}: {said}"


def _count(count: int, what: str) -> str:
    # "critical" has no plural.
    return f"{count} {what}" if count == 1 or what == Severity.CRITICAL else f"{count} {what}s"


def _cells(row: FindingModel | FixModel) -> list[Cell]:
    if isinstance(row, FixModel):
        return [row.id, "fixed" if row.is_done else "not fixed", row.action, None, None]
    return [row.id, row.severity, row.fact, row.meaning, row.advice]


FINDINGS: Listing[FindingModel | FixModel] = Listing(
    Columns(
        names=("ID", "SEVERITY", "FACT", "MEANING", "ADVICE"), text=("FACT", "MEANING", "ADVICE")
    ),
    _cells,
)
