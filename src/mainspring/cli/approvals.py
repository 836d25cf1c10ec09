"""`mainspring approvals`: List, approve and reject jobs that await approval."""

from collections.abc import Iterator
from typing import Annotated

import orjson
import typer
from rich.text import Text

from mainspring.api.models.approvals import ApprovalModel, VoteModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, several
from mainspring.cli.options import PAGE, DefinitionFilter, JobNumber, Limit, first
from mainspring.cli.output import STATE_STYLES, Facts, Out, console
from mainspring.cli.times import instant
from mainspring.client import Client
from mainspring.domain.types import JobState

app = typer.Typer()
approvals = typer.Typer(
    help="List, approve and reject jobs that await approval.", no_args_is_help=True
)
app.add_typer(approvals, name="approvals")

By = Annotated[
    str | None, typer.Option("--by", help="Decide in the name of this person (operators only).")
]
_DECISION_STYLES = {"approved": "green", "rejected": "red", "expired": "yellow"}


@approvals.command("list", epilog=example("mainspring approvals list"))
@connected
def list_approvals(
    client: Client,
    out: Out,
    definition: DefinitionFilter = None,
    after: Annotated[int | None, typer.Option(min=1, help="Only jobs newer than this id.")] = None,
    limit: Limit = 50,
) -> None:
    """List jobs that await approval, longest waiting first."""
    found = client.approvals.list(definition=definition, after=after, limit=min(limit, PAGE))
    out.rows(first(found, limit), APPROVALS, nothing="No jobs await approval.")


@approvals.command(epilog=example("mainspring approvals show 7"))
@connected
def show(client: Client, out: Out, job_id: JobNumber) -> None:
    """Show the approval of a job and its votes."""
    out.show(client.approvals.get(job_id), _print_approval)


@approvals.command(epilog=example("mainspring approvals approve 7 --reason 'checked with legal'"))
@connected
def approve(
    client: Client,
    out: Out,
    job_id: JobNumber,
    by: By = None,
    reason: Annotated[str, typer.Option(help="Reason, kept with the vote.")] = "",
) -> None:
    """Approve a job."""
    answer = client.approvals.approve(job_id, reason, by=by)
    is_enough = answer.state is not JobState.AWAITING_APPROVAL
    what = "approved" if is_enough else "approved by you, and needs more approvals"
    out.say(answer, f"Job {job_id} is {what}.")


@approvals.command(epilog=example("mainspring approvals reject 7 --reason 'wrong tenant'"))
@connected
def reject(
    client: Client,
    out: Out,
    job_id: JobNumber,
    reason: Annotated[str, typer.Option(help="Reason, kept with the vote (required).")],
    by: By = None,
) -> None:
    """Reject a job, which cancels it."""
    out.say(client.approvals.reject(job_id, reason, by=by), f"Job {job_id} is rejected.")


def _print_approval(approval: ApprovalModel) -> None:
    console.print(Facts(_facts(approval)))


def _facts(approval: ApprovalModel) -> Iterator[tuple[str, Text | str]]:
    """All that one decides by, in full."""
    yield "job", str(approval.job_id)
    yield "definition", Text(approval.definition)
    yield "state", _state(approval)
    yield "payload", Text(_payload(approval))
    yield "approved", _approved(approval)
    yield "by", Text(", ".join(approval.approvers) or "anyone")
    yield "asked", instant(approval.requested_at)
    yield "expires", instant(approval.expires_at) or "never"
    for vote in approval.votes:
        yield "vote", _vote(vote)


def _vote(vote: VoteModel) -> Text:
    said = "approved" if vote.is_approval else "rejected"
    reason = f": {vote.reason}" if vote.reason else ""
    return Text.assemble(
        f"{vote.actor} ", (said, _DECISION_STYLES[said]), f" {instant(vote.voted_at)}{reason}"
    )


def _state(approval: ApprovalModel) -> Text:
    if approval.decision is not None:
        return Text(approval.decision, _DECISION_STYLES.get(approval.decision, ""))
    return Text(str(approval.state), STATE_STYLES[approval.state])


def _approved(approval: ApprovalModel) -> str:
    return f"{approval.needed - approval.missing} of {approval.needed}"


def _payload(approval: ApprovalModel) -> str:
    return orjson.dumps(approval.payload).decode()


def _cells(approval: ApprovalModel) -> list[Cell]:
    return [
        str(approval.job_id),
        approval.definition,
        _state(approval),
        _approved(approval),
        several(approval.approvers) if approval.approvers else "anyone",
        approval.requested_at,
        approval.expires_at or "never",
        _payload(approval),
    ]


APPROVALS = Listing(
    Columns(
        names=("JOB", "DEFINITION", "STATE", "APPROVED", "BY", "ASKED", "EXPIRES", "PAYLOAD"),
        dropped=("STATE", "ASKED", "BY", "EXPIRES", "APPROVED"),
        text=("PAYLOAD",),
        varied=("STATE",),
    ),
    _cells,
)
