"""`mainspring jobs stats`: jobs by state."""

from collections.abc import Mapping

from rich.text import Text

from mainspring.api.models.jobs import SummaryModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.listings import Cell, Listing, Shown
from mainspring.cli.output import STATE_STYLES, Out, console, remark
from mainspring.cli.times import ago
from mainspring.client import Client
from mainspring.domain.jobs.model import FINAL_STATES
from mainspring.domain.types import JobState

# Short, so that the counts of a tenant fit on a line of 80 characters.
_HEADINGS = {JobState.AWAITING_APPROVAL: "AWAITING", JobState.DEAD_LETTER: "DEAD"}


@connected
def stats(client: Client, out: Out) -> None:
    """Count jobs by state, and those that ended today; members see their own live jobs."""
    print_summary(out, client.jobs.summary())


def print_summary(out: Out, summary: SummaryModel) -> None:
    out.show(summary, _print)


def _print(summary: SummaryModel) -> None:
    console.print(STATES([(state, summary) for state in JobState]))
    if JobState.SUCCEEDED not in summary.counts:
        remark("finished jobs are counted for admins, viewers and operators; see `jobs list`")
    if summary.waiting:
        wait = (
            "1 queued job waits" if summary.waiting == 1 else f"{summary.waiting} queued jobs wait"
        )
        remark(f"{wait} for a time, a limit or a turn")
    if summary.oldest_ready_at is not None:
        remark(f"the oldest ready job became ready {ago(summary.oldest_ready_at)}")


def _state_cells(counted: tuple[JobState, SummaryModel]) -> list[Cell]:
    state, summary = counted
    today = "" if state not in FINAL_STATES else _count(state, summary.today)
    return [Text(str(state), style=STATE_STYLES[state]), _count(state, summary.counts), today]


def _tenant_cells(counted: tuple[str, SummaryModel]) -> list[Cell]:
    name, summary = counted
    return [name, *(_count(state, summary.counts) for state in JobState)]


def _count(state: JobState, counts: Mapping[JobState, int]) -> Shown:
    """A dash where it was not counted."""
    if state not in counts:
        return Shown(Text("-", style="dim"), "-")
    count = counts[state]
    return Shown(Text(f"{count:,}", style=STATE_STYLES[state] if count else "dim"), str(count))


STATES = Listing(Columns(names=("STATE", "JOBS", "TODAY")), _state_cells)
TENANTS = Listing(
    Columns(
        names=("TENANT", *(_HEADINGS.get(state, str(state).upper()) for state in JobState)),
    ),
    _tenant_cells,
)
