"""`mainspring approvals ...`: see what awaits approval, and decide."""

from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import (
    AsJson,
    DatabaseUrl,
    DataDir,
    JobNumber,
    Tenant,
    make_settings,
    run,
)
from mainspring.domain.approvals import Approval
from mainspring.domain.types import JobState

approvals = typer.Typer(help="See what awaits approval, and decide.", no_args_is_help=True)

By = Annotated[str | None, typer.Option("--by", help="Who decides; the database's user else.")]


@approvals.command("list")
def list_approvals(
    after: Annotated[int | None, typer.Option(help="Only jobs newer than this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 50,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """What awaits approval, the longest waiting first."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.approvals.alist(tenant_id=tenant, after=after, limit=limit))
    if as_json:
        output.print_json([_facts(approval) for approval in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("Nothing awaits approval.")


@approvals.command()
def show(
    job_id: JobNumber,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """The approval of one job, with who said what."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    approval = run(app, app.approvals.aget(job_id, tenant_id=tenant))
    if as_json:
        output.print_json(_facts(approval))
        return
    output.console.print(_table([approval]))
    for vote in approval.votes:
        said = "approved" if vote.is_approval else "rejected"
        reason = f": {vote.reason}" if vote.reason else ""
        output.console.print(Text(f"{vote.actor} {said} {output.ago(vote.voted_at)}{reason}"))


@approvals.command()
def approve(
    job_id: JobNumber,
    by: By = None,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Say yes to a job."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.approvals.aapprove(job_id, by=by, reason=reason, tenant_id=tenant))
    what = "approved"
    if state is JobState.AWAITING_APPROVAL:
        what = "approved by you, and needs more approvals"
    output.console.print(f"Job {job_id} is {what}.", highlight=False)


@approvals.command()
def reject(
    job_id: JobNumber,
    reason: Annotated[str, typer.Option(help="Why; needed.")],
    by: By = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Say no to a job; it is canceled."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    run(app, app.approvals.areject(job_id, by=by, reason=reason, tenant_id=tenant))
    output.console.print(f"Job {job_id} is rejected.", highlight=False)


def _table(found: list[Approval]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("JOB", "DEFINITION", "STATE", "APPROVED", "BY", "ASKED", "PAYLOAD"):
        table.add_column(heading, overflow="ellipsis", no_wrap=heading == "PAYLOAD")
    for approval in found:
        table.add_row(
            str(approval.job_id),
            approval.definition,
            str(approval.decision or approval.state),
            f"{approval.needed - approval.missing} of {approval.needed}",
            ", ".join(approval.approvers) or "anyone",
            output.ago(approval.requested_at),
            Text(orjson.dumps(approval.payload).decode()),
        )
    return table


def _facts(approval: Approval) -> dict[str, Any]:
    return {**asdict(approval), "job_id": str(approval.job_id), "missing": approval.missing}
