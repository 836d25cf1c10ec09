"""`mainspring admin`: Commands for admins and operators."""

from collections.abc import Iterator
from heapq import merge
from typing import Annotated, Any

import typer

from mainspring.api.models.jobs import JobSummaryModel
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.job_output import JOBS
from mainspring.cli.jobs import Reason, cancel_job, delete_job, retry_job
from mainspring.cli.options import (
    PAGE,
    CreatorFilter,
    JobNumber,
    Limit,
    QueueFilter,
    StateFilter,
    Sure,
    first,
)
from mainspring.cli.output import Out, console, plain
from mainspring.cli.secrets import secrets
from mainspring.cli.stats import TENANTS, print_summary
from mainspring.cli.system_jobs import ensure_admin
from mainspring.client import Client
from mainspring.domain.access.roles import Role
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.types import BUILT_IN, JobSource

app = typer.Typer()
admin = typer.Typer(help="Commands for admins and operators.", no_args_is_help=True)
jobs = typer.Typer(help="Manage the jobs of all users and of the system.", no_args_is_help=True)
app.add_typer(admin, name="admin")
admin.add_typer(jobs, name="jobs")
admin.add_typer(secrets, name="secrets")

AllTenants = Annotated[
    bool, typer.Option("--all-tenants", help="Include every tenant (operators only).")
]


@jobs.command(
    "list",
    epilog=example(
        "mainspring admin jobs list --system", "mainspring admin jobs list --all-tenants"
    ),
)
@connected
def list_jobs(
    client: Client,
    out: Out,
    state: StateFilter = None,
    queue: QueueFilter = None,
    created_by: CreatorFilter = None,
    is_system: Annotated[
        bool, typer.Option("--system", help="Only jobs of schedules and of the system itself.")
    ] = False,
    all_tenants: AllTenants = False,
    limit: Limit = 20,
) -> None:
    """List the jobs of all users, newest first."""
    role = ensure_admin(client)
    filters = {"state": state, "queue": queue, "created_by": created_by}
    lists = [
        client.jobs.list(limit=min(limit, PAGE), **filters, **kind, **whose)
        for whose in (_tenants(client, role) if all_tenants else [{}])
        for kind in (_system_kinds(client) if is_system else [{}])
    ]
    out.rows(first(_newest(lists), limit), JOBS, nothing="No jobs.")


@jobs.command("cancel", epilog=example("mainspring admin jobs cancel 7 --reason 'wrong file'"))
@connected
def cancel(
    client: Client, out: Out, job_id: JobNumber, reason: Reason = "canceled by request"
) -> None:
    """Cancel any queued job, or ask a running one to stop."""
    ensure_admin(client)
    cancel_job(client, out, job_id, reason=reason)


@jobs.command("retry", epilog=example("mainspring admin jobs retry 7"))
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
    """Requeue any failed, dead-lettered or canceled job.

    Asks for confirmation if it runs at most once and may have begun.
    """
    ensure_admin(client)
    retry_job(client, out, job_id, payload=payload, is_sure=is_sure)


@jobs.command("delete", epilog=example("mainspring admin jobs delete 7 --yes"))
@connected
def delete(client: Client, out: Out, job_id: JobNumber, is_sure: Sure = False) -> None:
    """Delete any job that is not running, with its attempts."""
    ensure_admin(client)
    delete_job(client, out, job_id, is_sure=is_sure)


@jobs.command("stats", epilog=example("mainspring admin jobs stats --all-tenants"))
@connected
def stats(client: Client, out: Out, all_tenants: AllTenants = False) -> None:
    """Count the jobs of all users by state."""
    role = ensure_admin(client)
    if not all_tenants:
        print_summary(out, client.jobs.summary())
        return
    found = {
        whose["tenant"]: client.jobs.summary(tenant=whose["tenant"])
        for whose in _tenants(client, role)
    }
    facts = [{"tenant": name, **plain(summary)} for name, summary in found.items()]
    out.show(facts, lambda _: console.print(TENANTS(list(found.items()))))


def _tenants(client: Client, role: Role) -> list[dict[str, str]]:
    """Whose jobs, as the API is told."""
    if role is not Role.OPERATOR:
        raise Forbidden("only operators may use --all-tenants")
    return [{"tenant": tenant.name} for tenant in client.tenants.list(limit=PAGE)]


def _system_kinds(client: Client) -> list[dict[str, Any]]:
    """The filters that find the system's jobs between them; a job may pass several."""
    keys = [each.key for each in client.definitions.list() if each.key.startswith(BUILT_IN)]
    return [{"source": JobSource.SCHEDULE}, *({"definition": key} for key in keys)]


def _newest(lists: list[Iterator[JobSummaryModel]]) -> Iterator[JobSummaryModel]:
    """The jobs of all lists, each once, the newest first."""
    last = None
    for job in merge(*lists, key=lambda job: -job.id):
        if job.id != last:
            yield job
        last = job.id
