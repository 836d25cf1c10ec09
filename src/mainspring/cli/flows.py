"""`mainspring flows`: Manage flows of dependent jobs."""

import sys
from itertools import islice
from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from mainspring.api.models.flows import FlowJobModel, FlowModel
from mainspring.cli import retries
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, several
from mainspring.cli.options import Limit, Sure
from mainspring.cli.output import STATE_STYLES, Out, console, remark
from mainspring.cli.times import took
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.flows import FlowState

app = typer.Typer()
flows = typer.Typer(help="Manage flows of dependent jobs.", no_args_is_help=True)
app.add_typer(flows, name="flows")

FlowNumber = Annotated[int, typer.Argument(help="The flow's id.", min=1)]

FLOW_STYLES = {
    FlowState.RUNNING: "blue",
    FlowState.SUCCEEDED: "green",
    FlowState.FAILED: "red",
    FlowState.CANCELED: "dim",
}

_STEPS = (
    '[{"step": "a", "definition": "fetch"}, {"step": "b", "definition": "sum", "after": ["a"]}]'
)


@flows.command("list", epilog=example("mainspring flows list --limit 50"))
@connected
def list_flows(
    client: Client,
    out: Out,
    name: Annotated[
        list[str] | None, typer.Option(help="Only flows with this name; repeatable.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=1, help="Only flows older than this id.")
    ] = None,
    limit: Limit = 20,
) -> None:
    """List flows, newest first."""
    found = client.flows.list(limit=min(limit, 1000), name=name, before=before)
    nothing = "No flows; start one with `mainspring flows start`."
    out.rows(list(islice(found, limit)), FLOWS, nothing=nothing)


@flows.command("show", epilog=example("mainspring flows show 7"))
@connected
def show(
    client: Client,
    out: Out,
    flow_id: FlowNumber,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of jobs to show.")
    ] = 100,
) -> None:
    """Show a flow and its jobs."""
    flow = client.flows.get(flow_id)
    jobs = list(islice(client.flows.jobs(flow_id, limit=min(limit, 1000)), limit))
    if not out.is_for_people:
        out.show({**flow.model_dump(mode="json"), "members": jobs}, console.print)
        return
    console.print(FLOWS([flow]))
    console.print(FLOW_JOBS(jobs))
    if flow.jobs > len(jobs):
        remark(f"and {flow.jobs - len(jobs):,} more; see --limit")


@flows.command("start", epilog=example(f"mainspring flows start nightly '{_STEPS}'"))
@connected
def start(
    client: Client,
    out: Out,
    name: Annotated[str, typer.Argument(help="The flow's name.")],
    steps: Annotated[str, typer.Argument(help="Steps as a JSON list; - reads standard input.")],
) -> None:
    """Enqueue dependent jobs together: all or none."""
    started = client.flows.start(name, _read_steps(steps))
    out.say(started, f"Flow {started.id} is started: {_jobs(len(started.job_ids))}.")


@flows.command("cancel", epilog=example("mainspring flows cancel 7 --reason 'wrong month'"))
@connected
def cancel(
    client: Client,
    out: Out,
    flow_id: FlowNumber,
    reason: Annotated[
        str, typer.Option(help="Reason, kept with the jobs.")
    ] = "its flow was canceled",
) -> None:
    """Cancel the live jobs of a flow."""
    counted = client.flows.cancel(flow_id, reason)
    out.say(counted, f"Flow {flow_id}: {_jobs(counted.jobs)} canceled.")


@flows.command("retry", epilog=example("mainspring flows retry 7"))
@connected
def retry(client: Client, out: Out, flow_id: FlowNumber, is_sure: Sure = False) -> None:
    """Requeue the failed and canceled jobs of a flow.

    Asks for confirmation if one of them runs at most once and may have begun.
    """
    retries.confirm_flow(client, flow_id, is_sure=is_sure)
    counted = client.flows.retry(flow_id)
    out.say(counted, f"Flow {flow_id}: {_jobs(counted.jobs)} requeued.")


def _read_steps(text: str) -> Any:
    try:
        return orjson.loads(sys.stdin.read() if text == "-" else text)
    except orjson.JSONDecodeError as error:
        raise InvalidOption("steps", f"are not JSON ({error}); they are such as {_STEPS}") from None


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _cells(flow: FlowModel) -> list[Cell]:
    return [
        str(flow.id),
        flow.name,
        Text(flow.state, style=FLOW_STYLES[flow.state]),
        flow.jobs,
        flow.created_at,
        took(flow.created_at, flow.finished_at),
        ", ".join(f"{count:,} {state}" for state, count in flow.counts.items()),
    ]


def _job_cells(job: FlowJobModel) -> list[Cell]:
    return [
        str(job.id),
        job.step,
        job.definition,
        Text(job.state, style=STATE_STYLES[job.state]),
        several([str(parent) for parent in job.parent_ids]),
        job.last_error,
    ]


FLOWS = Listing(
    Columns(
        names=("FLOW", "NAME", "STATE", "JOBS", "CREATED", "TOOK", "NOTE"),
        dropped=("TOOK", "JOBS", "CREATED"),
        text=("NOTE",),
    ),
    _cells,
)
FLOW_JOBS = Listing(
    Columns(
        names=("JOB", "STEP", "DEFINITION", "STATE", "AFTER", "NOTE"),
        dropped=("AFTER", "DEFINITION"),
        text=("NOTE",),
    ),
    _job_cells,
)
