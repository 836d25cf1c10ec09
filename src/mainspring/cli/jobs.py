"""`mainspring enqueue`: Enqueue a job.

`mainspring jobs`: Manage jobs.
"""

import sys
from typing import Annotated, Any

import orjson
import typer

from mainspring.cli import retries
from mainspring.cli.bulk import bulk
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_seconds
from mainspring.cli.examples import example
from mainspring.cli.job_output import JOBS, job_view
from mainspring.cli.live import wait_for, watch_job, watch_jobs
from mainspring.cli.options import (
    PAGE,
    CreatorFilter,
    DefinitionFilter,
    ErrorFilter,
    EventFilter,
    FlowFilter,
    Instant,
    JobNumber,
    KeyFilter,
    Limit,
    ParentFilter,
    QueueFilter,
    ScheduleFilter,
    SlotFilter,
    SourceFilter,
    StateFilter,
    Sure,
    TagFilter,
    TriggerFilter,
    VersionFilter,
    Watch,
    WorkerFilter,
    first,
    utc,
)
from mainspring.cli.output import Out, confirm, console, say_id
from mainspring.cli.stats import stats
from mainspring.cli.system_jobs import ensure_not_system
from mainspring.client import Client
from mainspring.domain.errors import InvalidPayload
from mainspring.domain.types import Delivery, JobId, JobState

app = typer.Typer()
jobs = typer.Typer(help="Manage jobs.", no_args_is_help=True)
app.add_typer(jobs, name="jobs")
jobs.command(
    "bulk",
    epilog=example(
        "mainspring jobs bulk retry --state dead_letter --definition send_welcome --dry-run",
        "mainspring jobs bulk delete --state canceled --created-before 2026-01-31 --yes",
    ),
)(bulk)
jobs.command("stats", epilog=example("mainspring jobs stats"))(stats)

DedupeKey = Annotated[
    str | None, typer.Option(help="Refuse the job while a live one has this key.")
]
IdempotencyKey = Annotated[
    str | None, typer.Option(help="Return the first job if the key was used before.")
]
LimitKey = Annotated[str | None, typer.Option(help="Key under which limits count the job.")]
Approvals = Annotated[
    int | None, typer.Option("--approvals", help="Number of approvals it needs before it runs.")
]
CreatedBy = Annotated[
    str | None, typer.Option(help="On whose behalf it is enqueued (admins and operators).")
]
Source = Annotated[str | None, typer.Option(help="Where it comes from, e.g. checkout.")]
DeliveryOption = Annotated[
    Delivery | None, typer.Option("--delivery", help="Whether it runs again if its worker dies.")
]
Reason = Annotated[str, typer.Option(help="Reason, kept with the job.")]


@app.command(epilog=example("""mainspring enqueue hello '{"name": "Ada"}' --wait 10"""))
@connected
def enqueue(
    client: Client,
    out: Out,
    key: Annotated[str, typer.Argument(help="Key of the definition.")],
    payload: Annotated[
        str, typer.Argument(help="Payload as a JSON object; - reads standard input.")
    ] = "{}",
    queue: Annotated[str | None, typer.Option(help="Queue, instead of the definition's.")] = None,
    priority: Annotated[
        int | None, typer.Option(help="Priority, 0 (first) to 1000 (last).")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="Time to wait before it may start, e.g. 30, 90s or 5m.")
    ] = None,
    dedupe_key: DedupeKey = None,
    idempotency_key: IdempotencyKey = None,
    limit_key: LimitKey = None,
    approvals_needed: Approvals = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Tag; repeatable.")] = None,
    after: Annotated[
        list[int] | None, typer.Option(help="Id of a job to wait for; repeatable.")
    ] = None,
    on_parent_failure: Annotated[
        str, typer.Option(help="What to do when a parent fails: cancel, continue or wait.")
    ] = "cancel",
    created_by: CreatedBy = None,
    source: Source = None,
    delivery: DeliveryOption = None,
    wait: Annotated[
        str | None, typer.Option(help="Time to wait for the result, e.g. 10, 90s or 5m.")
    ] = None,
) -> None:
    """Enqueue a job."""
    patience = None if wait is None else read_seconds("--wait", wait)
    made = client.jobs.enqueue(
        key,
        parse_payload(payload),
        idempotency_key=idempotency_key,
        queue=queue,
        priority=priority,
        delay=None if delay is None else read_seconds("--delay", delay),
        dedupe_key=dedupe_key,
        limit_key=limit_key,
        approvals_needed=approvals_needed,
        tags=tags,
        after=[str(job_id) for job_id in after or ()],
        on_parent_failure=on_parent_failure,
        created_by=created_by,
        source=source,
        delivery=delivery,
    )
    if patience is None:
        known = "" if made.is_new else " already existed"
        out.show(made, lambda _: say_id(made.id, f"job {made.id}{known}"))
    else:
        result = wait_for(client, JobId(made.id), patience)
        Out.chosen(out.format, as_json=out.is_for_people).show(result, console.print)


@jobs.command("list", epilog=example("mainspring jobs list --state failed --limit 50"))
@connected
def list_jobs(
    client: Client,
    out: Out,
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
    slot_at: SlotFilter = None,
    trigger: TriggerFilter = None,
    event_id: EventFilter = None,
    flow_id: FlowFilter = None,
    parent_id: ParentFilter = None,
    worker_id: WorkerFilter = None,
    definition_version: VersionFilter = None,
    limit: Limit = 20,
    watch: Watch = False,
) -> None:
    """List jobs, newest first."""
    filters: dict[str, Any] = {
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
        "slot_at": utc(slot_at),
        "trigger": trigger,
        "event_id": event_id,
        "flow_id": flow_id,
        "parent_id": parent_id,
        "worker_id": worker_id,
        "definition_version": definition_version,
    }
    if watch:
        watch_jobs(client, limit=limit, **filters)
        return
    found = client.jobs.list(limit=min(limit, PAGE), **filters)
    out.rows(first(found, limit), JOBS, nothing="No jobs.")


@jobs.command("show", epilog=example("mainspring jobs show 7", "mainspring jobs show 7 --watch"))
@connected
def show(client: Client, out: Out, job_id: JobNumber, watch: Watch = False) -> None:
    """Show a job and its attempts."""
    if watch:
        watch_job(client, JobId(job_id))
        return
    job, attempts = client.jobs.get(job_id), client.jobs.attempts(job_id)
    if out.is_for_people:
        console.print(job_view(job, attempts))
    else:
        facts = [attempt.model_dump(mode="json") for attempt in attempts]
        out.show({**job.model_dump(mode="json"), "attempts": facts}, console.print)


@jobs.command("cancel", epilog=example("mainspring jobs cancel 7 --reason 'wrong file'"))
@connected
def cancel(
    client: Client, out: Out, job_id: JobNumber, reason: Reason = "canceled by request"
) -> None:
    """Cancel a queued job, or ask a running one to stop."""
    ensure_not_system(client, job_id, "cancel")
    cancel_job(client, out, job_id, reason=reason)


@jobs.command("retry", epilog=example("""mainspring jobs retry 7 --payload '{"user_id": 8}'"""))
@connected
def retry(
    client: Client,
    out: Out,
    job_id: JobNumber,
    payload: Annotated[
        str | None, typer.Option(help="New payload as JSON; - reads standard input.")
    ] = None,
    is_sure: Sure = False,
) -> None:
    """Requeue a failed, dead-lettered or canceled job.

    Asks for confirmation if it runs at most once and may have begun.
    """
    ensure_not_system(client, job_id, "retry")
    retry_job(client, out, job_id, payload=payload, is_sure=is_sure)


@jobs.command("delete", epilog=example("mainspring jobs delete 7 --yes"))
@connected
def delete(client: Client, out: Out, job_id: JobNumber, is_sure: Sure = False) -> None:
    """Delete a job that is not running, with its attempts."""
    ensure_not_system(client, job_id, "delete")
    delete_job(client, out, job_id, is_sure=is_sure)


def cancel_job(client: Client, out: Out, job_id: int, *, reason: str) -> None:
    answer = client.jobs.cancel(job_id, reason)
    is_asked = answer.state is JobState.RUNNING
    out.say(answer, f"job {job_id} {'was asked to stop' if is_asked else 'is canceled'}")


def retry_job(client: Client, out: Out, job_id: int, *, payload: str | None, is_sure: bool) -> None:
    edited = None if payload is None else parse_payload(payload)
    retries.confirm_job(client, job_id, is_sure=is_sure)
    out.say(client.jobs.retry(job_id, edited), f"job {job_id} is queued")


def delete_job(client: Client, out: Out, job_id: int, *, is_sure: bool) -> None:
    confirm(f"Delete job {job_id} and its attempts?", is_sure=is_sure)
    client.jobs.delete(job_id)
    out.say({"id": str(job_id), "deleted": True}, f"job {job_id} is deleted")


def parse_payload(text: str) -> dict[str, Any]:
    """JSON; a dash reads it from standard input, since others may see the arguments."""
    try:
        payload = orjson.loads(sys.stdin.read() if text == "-" else text)
    except orjson.JSONDecodeError as error:
        raise InvalidPayload(
            f"the payload is not JSON ({error}); in a shell write it in single quotes, "
            "such as '{\"user_id\": 7}'"
        ) from error
    if not isinstance(payload, dict):
        raise InvalidPayload(f"the payload must be a JSON object, not {text.strip()[:40]!r}")
    return payload
