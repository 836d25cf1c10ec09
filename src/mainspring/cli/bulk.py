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
    EventFilter,
    FlowFilter,
    Instant,
    KeyFilter,
    ParentFilter,
    QueueFilter,
    ScheduleFilter,
    SourceFilter,
    StateFilter,
    Sure,
    TagFilter,
    TriggerFilter,
    VersionFilter,
    Watch,
    utc,
)
from mainspring.cli.output import Out, confirm
from mainspring.client import Client
from mainspring.domain.types import BulkAction, JobId

All = Annotated[bool, typer.Option("--all", help="Apply to every job.")]
Reason = Annotated[str, typer.Option(help="Reason, kept with the jobs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")]


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
    error_key: KeyFilter = None,
    created_after: Instant = None,
    created_before: Instant = None,
    created_by: CreatorFilter = None,
    schedule: ScheduleFilter = None,
    trigger: TriggerFilter = None,
    event_id: EventFilter = None,
    flow_id: FlowFilter = None,
    parent_id: ParentFilter = None,
    definition_version: VersionFilter = None,
    is_all: All = False,
    reason: Reason = "",
    is_dry_run: DryRun = False,
    watch: Watch = False,
    is_sure: Sure = False,
) -> None:
    """Cancel, retry or delete all jobs that match a filter, in the background.

    Shows how many match and asks for confirmation.
    """
    said: dict[str, Any] = {
        "state": state,
        "queue": queue,
        "definition": definition,
        "source": source,
        "tag": tag,
        "error": error,
        "error_key": error_key,
        "created_after": utc(created_after),
        "created_before": utc(created_before),
        "created_by": created_by,
        "schedule": schedule,
        "trigger": trigger,
        "event_id": event_id,
        "flow_id": flow_id,
        "parent_id": parent_id,
        "definition_version": definition_version,
    }
    asked = {name: value for name, value in said.items() if value is not None}
    asked |= {"all": True} if is_all else {}
    if is_dry_run or not is_sure:
        counted = client.jobs.bulk(action, dry_run=True, **asked)
        if is_dry_run:
            out.say(counted, f"{_jobs(counted)} would be affected by {action}")
            return
        confirm(f"{str(action).capitalize()} {_jobs(counted)}?", is_sure=False)
    if reason:
        asked["reason"] = reason
    _follow(client, out, client.jobs.bulk(action, **asked), watch=watch)


def _follow(client: Client, out: Out, started: BulkModel, *, watch: bool) -> None:
    out.say(started, _started(started))
    if watch and started.job_id:
        watch_job(client, JobId(started.job_id))


def _started(started: BulkModel) -> str:
    look = f"mainspring jobs show {started.job_id} --watch"
    return f"job {started.job_id} is processing {_jobs(started)}; follow it with `{look}`"


def _jobs(counted: BulkModel) -> str:
    more = "" if counted.is_exact else " or more"
    return f"{counted.count:,}{more} job{'' if counted.count == 1 else 's'}"
