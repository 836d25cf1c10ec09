"""`mainspring jobs stats`: how the jobs stand."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mainspring.api.models.jobs import SummaryModel
from mainspring.cli.output import STATE_STYLES, Out, ago, console, table
from mainspring.cli.reaching import reaching
from mainspring.client import Client
from mainspring.domain.types import JobState


@reaching
def stats(client: Client, out: Out) -> None:
    """How many jobs are in which state, and what ended today; a member's own live ones."""
    print_summary(out, client.jobs.summary())


def print_summary(out: Out, summary: SummaryModel) -> None:
    out.show(summary, lambda it: console.print(_view(it)))


def tenants_table(summaries: Mapping[str, SummaryModel]) -> Table:
    made = table("TENANT", *(str(state).upper().replace("_", " ") for state in JobState))
    for name, summary in summaries.items():
        made.add_row(name, *(_count(state, summary.counts[state]) for state in JobState))
    return made


def _view(summary: SummaryModel) -> Group:
    made = table("STATE", "JOBS", "TODAY")
    for state in JobState:
        today = summary.today.get(state)
        name = Text(str(state), style=STATE_STYLES[state])
        count = _count(state, summary.counts[state])
        made.add_row(name, count, "" if today is None else _count(state, today))
    lines = []
    if summary.waiting:
        lines.append(Text(f"{summary.waiting} of the queued wait for a time, a limit or a turn"))
    if summary.oldest_ready_at is not None:
        lines.append(Text(f"the oldest that is ready became so {ago(summary.oldest_ready_at)}"))
    return Group(made, *lines)


def _count(state: JobState, count: int) -> Text:
    return Text(f"{count:,}", style=STATE_STYLES[state] if count else "dim")
