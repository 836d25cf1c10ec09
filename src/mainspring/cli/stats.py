"""`mainspring jobs stats`: jobs by state."""

from collections.abc import Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mainspring.api.models.jobs import SummaryModel
from mainspring.cli.connection import connected
from mainspring.cli.output import STATE_STYLES, Out, ago, console, table
from mainspring.client import Client
from mainspring.domain.types import JobState


@connected
def stats(client: Client, out: Out) -> None:
    """Count jobs by state, and those that ended today; members see their own live jobs."""
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
        lines.append(Text(f"{summary.waiting} queued jobs wait for a time, a limit or a turn"))
    if summary.oldest_ready_at is not None:
        lines.append(Text(f"the oldest ready job became ready {ago(summary.oldest_ready_at)}"))
    return Group(made, *lines)


def _count(state: JobState, count: int) -> Text:
    return Text(f"{count:,}", style=STATE_STYLES[state] if count else "dim")
