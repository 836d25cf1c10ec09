"""`mainspring jobs bulk`: cancel, retry or delete all jobs that pass a filter."""

from typing import Annotated, Any

import typer

from mainspring.api.models.operations import BulkModel
from mainspring.cli.connection import connected
from mainspring.cli.live import watch_job
from mainspring.cli.options import (
    CreatorFilter,
    DefinitionFilter,
    ErrorFilter,
    Instant,
    QueueFilter,
    SourceFilter,
    StateFilter,
    Sure,
    TagFilter,
    Watch,
    utc,
)
from mainspring.cli.output import Out, confirm
from mainspring.client import Client
from mainspring.domain.types import BulkAction, JobId


@connected
def bulk(
    client: Client,
    out: Out,
    action: Annotated[BulkAction, typer.Argument(help="What to do with the jobs.")],
    state: StateFilter = None,
    queue: QueueFilter = None,
    definition: DefinitionFilter = None,
    source: SourceFilter = None,
    tag: TagFilter = None,
    error: ErrorFilter = None,
    created_after: Instant = None,
    created_before: Instant = None,
    created_by: CreatorFilter = None,
    is_all: Annotated[bool, typer.Option("--all", help="Apply to every job.")] = False,
    reason: Annotated[str, typer.Option(help="Reason, kept with the jobs.")] = "",
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")] = False,
    watch: Watch = False,
    is_sure: Sure = False,
) -> None:
    """Cancel, retry or delete all jobs that match a filter, in the background.

    Shows how many match and asks for confirmation.
    """
    said: dict[str, Any] = {
        "status": state,
        "queue": queue,
        "definition": definition,
        "source": source,
        "tag": tag,
        "error": error,
        "created_after": utc(created_after),
        "created_before": utc(created_before),
        "created_by": created_by,
    }
    asked = {name: value for name, value in said.items() if value is not None}
    if is_all:
        asked["all"] = True
    if is_dry_run or not is_sure:
        counted = client.jobs.bulk(action, dry_run=True, **asked)
        if is_dry_run:
            out.say(counted, f"{_jobs(counted)} would be affected by {action}")
            return
        confirm(f"{str(action).capitalize()} {_jobs(counted)}?", is_sure=False)
    if reason:
        asked["reason"] = reason
    started = client.jobs.bulk(action, **asked)
    look = f"mainspring jobs show {started.job_id} --watch"
    out.say(
        started, f"job {started.job_id} is processing {_jobs(started)}; follow it with `{look}`"
    )
    if watch and started.job_id is not None:
        watch_job(client, JobId(started.job_id))


def _jobs(counted: BulkModel) -> str:
    more = "" if counted.is_exact else " or more"
    return f"{counted.count:,}{more} job{'' if counted.count == 1 else 's'}"
