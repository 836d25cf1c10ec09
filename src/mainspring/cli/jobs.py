"""`mainspring jobs ...` and `mainspring enqueue`."""

import sys
from datetime import datetime
from typing import Annotated, Any

import orjson
import typer

from mainspring.cli.job_output import job_view, jobs_table
from mainspring.cli.options import (
    PAGE,
    DefinitionFilter,
    ErrorFilter,
    Instant,
    JobNumber,
    Limit,
    QueueFilter,
    SourceFilter,
    StateFilter,
    Sure,
    TagFilter,
    first,
)
from mainspring.cli.output import Out, confirm, console
from mainspring.cli.reaching import example, reaching
from mainspring.cli.system_jobs import ensure_not_system
from mainspring.cli.watching import wait_for, watch_job, watch_jobs
from mainspring.client import Client
from mainspring.domain.errors import InvalidPayload
from mainspring.domain.types import JobId, JobState

jobs = typer.Typer(help="See and steer jobs.", no_args_is_help=True)

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on showing it as it changes.")]
Reason = Annotated[str, typer.Option(help="Kept with the job.")]


@reaching
def enqueue(
    client: Client,
    out: Out,
    key: Annotated[str, typer.Argument(help="The definition's key.")],
    payload: Annotated[str, typer.Argument(help="The payload, a JSON object; - reads it.")] = "{}",
    queue: Annotated[str | None, typer.Option(help="Another queue than the definition's.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 (first) to 1000 (last).")] = None,
    delay: Annotated[float | None, typer.Option(help="Seconds to wait before it runs.")] = None,
    dedupe_key: Annotated[str | None, typer.Option(help="Only one live job may hold it.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A repeated enqueue returns the first job.")
    ] = None,
    limit_key: Annotated[
        str | None, typer.Option(help="What it counts as where its definition has a limit.")
    ] = None,
    approvals_needed: Annotated[
        int | None, typer.Option("--approvals", help="How many have to approve it first.")
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A word to find it by; may be repeated.")
    ] = None,
    after: Annotated[
        list[int] | None, typer.Option(help="A job it waits for; may be repeated.")
    ] = None,
    on_parent_failure: Annotated[
        str, typer.Option(help="cancel, continue or wait, when one of those fails.")
    ] = "cancel",
    wait: Annotated[
        float | None, typer.Option(min=0, help="Wait this many seconds for the result.")
    ] = None,
) -> None:
    """Enqueue a job."""
    made = client.jobs.enqueue(
        key,
        parse_payload(payload),
        idempotency_key=idempotency_key,
        queue=queue,
        priority=priority,
        delay=delay,
        dedupe_key=dedupe_key,
        limit_key=limit_key,
        approvals_needed=approvals_needed,
        tags=tags,
        after=[str(job_id) for job_id in after or ()],
        on_parent_failure=on_parent_failure,
    )
    if wait is None:
        out.say(made, f"job {made.id}{'' if made.is_new else ' was there before'}")
    else:
        result = wait_for(client, JobId(made.id), wait)
        Out.chosen(out.format, as_json=out.is_for_people).show(result, console.print)


@jobs.command("list", epilog=example("mainspring jobs list --state failed --limit 50"))
@reaching
def list_jobs(
    client: Client,
    out: Out,
    state: StateFilter = None,
    queue: QueueFilter = None,
    definition: DefinitionFilter = None,
    source: SourceFilter = None,
    tag: TagFilter = None,
    error: ErrorFilter = None,
    created_after: Instant = None,
    created_before: Instant = None,
    limit: Limit = 20,
    watch: Watch = False,
) -> None:
    """Jobs, the newest first."""
    filters: dict[str, Any] = {
        "status": state,
        "queue": queue,
        "definition": definition,
        "source": source,
        "tag": tag,
        "error": error,
        "created_after": utc(created_after),
        "created_before": utc(created_before),
    }
    if watch:
        watch_jobs(client, limit=limit, **filters)
        return
    found = client.jobs.list(limit=min(limit, PAGE), **filters)
    out.rows(first(found, limit), jobs_table, nothing="No jobs.")


@jobs.command("show", epilog=example("mainspring jobs show 7", "mainspring jobs show 7 --watch"))
@reaching
def show(client: Client, out: Out, job_id: JobNumber, watch: Watch = False) -> None:
    """One job with its attempts."""
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
@reaching
def cancel(
    client: Client, out: Out, job_id: JobNumber, reason: Reason = "canceled by request"
) -> None:
    """Cancel a queued job; ask a running one to stop."""
    ensure_not_system(client, job_id, "cancel")
    cancel_job(client, out, job_id, reason=reason)


@jobs.command("retry", epilog=example("""mainspring jobs retry 7 --payload '{"user_id": 8}'"""))
@reaching
def retry(
    client: Client,
    out: Out,
    job_id: JobNumber,
    payload: Annotated[str | None, typer.Option(help="Another payload; - reads it.")] = None,
) -> None:
    """Put a failed, dead-lettered or canceled job back to queued."""
    ensure_not_system(client, job_id, "retry")
    retry_job(client, out, job_id, payload=payload)


@jobs.command("delete", epilog=example("mainspring jobs delete 7 --yes"))
@reaching
def delete(client: Client, out: Out, job_id: JobNumber, is_sure: Sure = False) -> None:
    """Remove a job that is not running, with its attempts."""
    ensure_not_system(client, job_id, "delete")
    delete_job(client, out, job_id, is_sure=is_sure)


def cancel_job(client: Client, out: Out, job_id: int, *, reason: str) -> None:
    told = client.jobs.cancel(job_id, reason)
    is_asked = told.state is JobState.RUNNING
    out.say(told, f"job {job_id} {'was asked to stop' if is_asked else 'is canceled'}")


def retry_job(client: Client, out: Out, job_id: int, *, payload: str | None) -> None:
    edited = None if payload is None else parse_payload(payload)
    out.say(client.jobs.retry(job_id, edited), f"job {job_id} is queued")


def delete_job(client: Client, out: Out, job_id: int, *, is_sure: bool) -> None:
    confirm(f"Remove job {job_id} and its attempts?", is_sure=is_sure)
    client.jobs.delete(job_id)
    out.say({"id": str(job_id), "deleted": True}, f"job {job_id} is removed")


def utc(at: datetime | None) -> str | None:
    return None if at is None else f"{at.isoformat()}Z"


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
