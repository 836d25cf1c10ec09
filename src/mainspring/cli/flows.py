"""`mainspring flows ...`: see and steer jobs that wait for each other."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, Tenant, make_settings, run
from mainspring.domain.flows import FlowJob, FlowSummary

flows = typer.Typer(help="See and steer jobs that wait for each other.", no_args_is_help=True)

FlowNumber = Annotated[int, typer.Argument(help="The flow's id.", min=1)]


@flows.command("list")
def list_flows(
    before: Annotated[int | None, typer.Option(help="Only flows older than this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 20,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Flows, the newest first."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.flows.alist(tenant_id=tenant, before=before, limit=limit))
    if as_json:
        output.print_json([_facts(flow) for flow in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No flows.")


@flows.command()
def show(
    flow_id: FlowNumber,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most jobs shown.")] = 100,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """One flow with its jobs."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def read() -> tuple[FlowSummary, list[FlowJob]]:
        flow = await app.flows.aget(flow_id, tenant_id=tenant)
        return flow, await app.flows.ajobs(flow_id, tenant_id=tenant, limit=limit)

    flow, jobs = run(app, read())
    if as_json:
        output.print_json({**_facts(flow), "members": [_job_facts(job) for job in jobs]})
        return
    output.console.print(_table([flow]))
    output.console.print(_job_table(jobs))
    if flow.jobs > len(jobs):
        output.console.print(f"and {flow.jobs - len(jobs):,} more; see --limit", highlight=False)


@flows.command()
def cancel(
    flow_id: FlowNumber,
    reason: Annotated[str, typer.Option(help="Why.")] = "its flow was canceled",
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Cancel what is live of a flow."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    count = run(app, app.flows.acancel(flow_id, reason=reason, tenant_id=tenant))
    output.console.print(f"Flow {flow_id}: {_jobs(count)} canceled.", highlight=False)


@flows.command()
def retry(
    flow_id: FlowNumber,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Put what failed or was canceled in a flow back."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    count = run(app, app.flows.aretry(flow_id, tenant_id=tenant))
    output.console.print(f"Flow {flow_id}: {_jobs(count)} put back.", highlight=False)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _table(found: list[FlowSummary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("FLOW", "NAME", "STATE", "JOBS", "CREATED", "TOOK", "NOTE"):
        table.add_column(heading, overflow="ellipsis", no_wrap=heading != "NOTE")
    for flow in found:
        note = ", ".join(f"{count:,} {state}" for state, count in flow.counts.items())
        table.add_row(
            str(flow.id),
            flow.name,
            str(flow.state),
            f"{flow.jobs:,}",
            output.ago(flow.created_at),
            output.took(flow.created_at, flow.finished_at),
            note,
        )
    return table


def _job_table(jobs: list[FlowJob]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("JOB", "STEP", "DEFINITION", "STATE", "AFTER", "NOTE"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True)
    for job in jobs:
        table.add_row(
            str(job.id),
            job.step,
            job.definition,
            Text(str(job.state), style=output.STATE_STYLES[job.state]),
            ", ".join(map(str, job.parent_ids)),
            Text((job.last_error or "").partition("\n")[0]),
        )
    return table


def _facts(flow: FlowSummary) -> dict[str, Any]:
    counts = {str(state): count for state, count in flow.counts.items()}
    return {**asdict(flow), "id": str(flow.id), "counts": counts}


def _job_facts(job: FlowJob) -> dict[str, Any]:
    return {**asdict(job), "id": str(job.id), "parent_ids": [str(each) for each in job.parent_ids]}
