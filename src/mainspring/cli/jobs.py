"""`mainspring jobs ...` and `mainspring enqueue`."""

import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import orjson
import typer

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, JobNumber, Tenant, make_settings
from mainspring.domain.errors import InvalidOption, InvalidPayload
from mainspring.domain.types import JobState

T = TypeVar("T")

jobs = typer.Typer(help="See and steer jobs.", no_args_is_help=True)


def run(app: Mainspring, coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return app.blocking(coroutine)
    finally:
        app.close()


def enqueue(
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
    after: Annotated[
        list[int] | None, typer.Option(help="A job it waits for; may be repeated.")
    ] = None,
    on_parent_failure: Annotated[
        str, typer.Option(help="cancel, continue or wait, when one of those fails.")
    ] = "cancel",
    wait: Annotated[
        float | None, typer.Option(help="Wait this many seconds for the result.")
    ] = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Enqueue a job."""
    options: dict[str, Any] = {
        "tenant_id": tenant,
        "queue": queue,
        "priority": priority,
        "delay": None if delay is None else timedelta(seconds=delay),
        "dedupe_key": dedupe_key,
        "idempotency_key": idempotency_key,
        "limit_key": limit_key,
        "approvals_needed": approvals_needed,
        "after": after or (),
        "on_parent_failure": on_parent_failure,
    }
    app = Mainspring(settings=make_settings(database_url, data_dir))
    chosen = parse_payload(payload)
    run(app, _enqueue(app, key, payload=chosen, options=options, wait=wait, as_json=as_json))


async def _enqueue(
    app: Mainspring,
    key: str,
    *,
    payload: Any,
    options: dict[str, Any],
    wait: float | None,
    as_json: bool,
) -> None:
    handle = await app.aenqueue(key, payload, **options)
    if wait is not None:
        result = await handle.aresult(wait)
        output.print_json(result)
    elif as_json:
        output.print_json({"id": str(handle.id), "is_new": handle.is_new})
    else:
        output.console.print(f"job {handle.id}{'' if handle.is_new else ' was there before'}")


@jobs.command("list")
def list_jobs(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only jobs of this queue.")] = None,
    definition: Annotated[str | None, typer.Option(help="Only jobs of this definition.")] = None,
    before: Annotated[int | None, typer.Option(help="Only jobs older than this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 20,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Jobs, the newest first."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(
        app,
        app.ajobs(
            tenant_id=tenant,
            state=parse_state(state),
            queue=queue,
            definition=definition,
            before=before,
            limit=limit,
        ),
    )
    if as_json:
        output.print_json([output.job_facts(job) for job in found])
    else:
        output.print_jobs(found)


@jobs.command()
def show(
    job_id: JobNumber,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """One job with its attempts."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def read() -> tuple[Any, Any]:
        job = await app.ajob(job_id, tenant_id=tenant)
        return job, await app.aattempts(job_id, tenant_id=tenant)

    job, attempts = run(app, read())
    if as_json:
        facts = [output.attempt_facts(attempt) for attempt in attempts]
        output.print_json({**output.job_facts(job), "attempts": facts})
    else:
        output.print_job(job, attempts)


@jobs.command()
def cancel(
    job_id: JobNumber,
    reason: Annotated[str, typer.Option(help="Kept with the job.")] = "canceled by request",
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Cancel a queued job; ask a running one to stop."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.acancel(job_id, reason, tenant_id=tenant))
    is_asked = state is JobState.RUNNING
    output.console.print(f"job {job_id} {'was asked to stop' if is_asked else 'is canceled'}")


@jobs.command()
def retry(
    job_id: JobNumber,
    payload: Annotated[str | None, typer.Option(help="Another payload; - reads it.")] = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Put a failed, dead-lettered or canceled job back to queued."""
    edited = None if payload is None else parse_payload(payload)
    app = Mainspring(settings=make_settings(database_url, data_dir))
    run(app, app.aretry(job_id, edited, tenant_id=tenant))
    output.console.print(f"job {job_id} is queued")


@jobs.command()
def delete(
    job_id: JobNumber,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Remove a job that is not running, with its attempts."""
    if not is_sure:
        typer.confirm(f"Remove job {job_id} and its attempts?", abort=True)
    app = Mainspring(settings=make_settings(database_url, data_dir))
    run(app, app.adelete(job_id, tenant_id=tenant))
    output.console.print(f"job {job_id} is removed")


def parse_payload(text: str) -> Any:
    """JSON; a dash reads it from standard input, since others may see the arguments."""
    try:
        return orjson.loads(sys.stdin.read() if text == "-" else text)
    except orjson.JSONDecodeError as error:
        raise InvalidPayload(
            f"the payload is not JSON ({error}); in a shell write it in single quotes, "
            "such as '{\"user_id\": 7}'"
        ) from error


def parse_state(text: str | None) -> JobState | None:
    if text is None:
        return None
    try:
        return JobState(text)
    except ValueError:
        known = ", ".join(JobState)
        raise InvalidOption("--state", f"must be one of {known}, not {text!r}") from None
