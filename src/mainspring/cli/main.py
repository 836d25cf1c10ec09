"""The command line's front: commands, errors and exit codes.

Exit codes: 0 done; 1 what was asked for did not succeed or was not found; 2 the command, a
setting or the database is wrong, and the message says how.
"""

import sys
from http import HTTPStatus

import typer
from rich.text import Text

from mainspring import __version__
from mainspring.cli import jobs as job_commands
from mainspring.cli import login as login_commands
from mainspring.cli import output
from mainspring.cli import schedules as schedule_commands
from mainspring.cli import tokens as token_commands
from mainspring.cli import worker as worker_commands
from mainspring.cli.admin import admin
from mainspring.cli.approvals import approvals
from mainspring.cli.audit import audit
from mainspring.cli.bulk import bulk
from mainspring.cli.completion import completion
from mainspring.cli.config import config
from mainspring.cli.cron import cron
from mainspring.cli.definitions import definitions
from mainspring.cli.events import events
from mainspring.cli.flows import flows
from mainspring.cli.limits import limits
from mainspring.cli.migrate import migrate
from mainspring.cli.options import ConfigFile
from mainspring.cli.reaching import example
from mainspring.cli.stats import stats
from mainspring.cli.tenants import tenants
from mainspring.cli.top import top
from mainspring.cli.triggers import triggers
from mainspring.cli.workers import queues, workers
from mainspring.domain.errors import (
    ConflictError,
    JobUnsuccessful,
    MainspringError,
    NotFoundError,
    ResultTimeout,
)
from mainspring.domain.errors.client import ApiError

_NOT_DONE = (ConflictError, JobUnsuccessful, NotFoundError, ResultTimeout)
_NOT_DONE_STATUS = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)

app = typer.Typer(
    name="mainspring",
    help="Background jobs and schedules for teams that already run PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command(epilog=example("mainspring up --app jobs:app"))(worker_commands.up)
app.command(epilog=example("mainspring worker --app jobs:app --queues mail,default --processes 2"))(
    worker_commands.worker
)
app.command(epilog=example("mainspring scheduler --app jobs:app"))(worker_commands.scheduler)
app.command("server", epilog=example("mainspring server --port 8080"))(worker_commands.serve)
app.command(
    epilog=example(
        "mainspring login https://jobs.example.com --name production",
        "mainspring login 'http://127.0.0.1:8080/login?code=...'",
    )
)(login_commands.login)
app.command(epilog=example("mainspring logout production"))(login_commands.logout)
app.add_typer(login_commands.profiles, name="profiles")
app.command(epilog=example("mainspring top", "mainspring top --once --json"))(top)
app.command(epilog=example("mainspring completion bash >> ~/.bashrc", "mainspring completion zsh"))(
    completion
)
app.command(
    "login-link",
    epilog=example(
        "mainspring login-link ann", "mainspring login-link ann --url https://jobs.example.com"
    ),
)(token_commands.login_link)
app.command(epilog=example("mainspring migrate", "mainspring migrate --check"))(migrate)
app.command(epilog=example("""mainspring enqueue hello '{"name": "Ada"}' --wait 10"""))(
    job_commands.enqueue
)
job_commands.jobs.command(
    "bulk",
    epilog=example(
        "mainspring jobs bulk retry --state dead_letter --definition send_welcome --dry-run",
        "mainspring jobs bulk delete --state canceled --created-before 2026-01-31 --yes",
    ),
)(bulk)
job_commands.jobs.command("stats", epilog=example("mainspring jobs stats"))(stats)
app.add_typer(job_commands.jobs, name="jobs")
app.add_typer(schedule_commands.schedules, name="schedules")
app.add_typer(definitions, name="definitions")
app.add_typer(limits, name="limits")
app.add_typer(approvals, name="approvals")
app.add_typer(flows, name="flows")
app.add_typer(events, name="events")
app.add_typer(triggers, name="triggers")
app.add_typer(tenants, name="tenants")
app.add_typer(token_commands.people, name="people")
app.add_typer(token_commands.tokens, name="tokens")
app.add_typer(workers, name="workers")
app.add_typer(queues, name="queues")
app.add_typer(audit, name="audit")
app.add_typer(admin, name="admin")
app.add_typer(cron, name="cron")
app.add_typer(config, name="config")


@app.callback()
def take_config(config_file: ConfigFile = None) -> None:
    """What every command takes; the option itself says which file is read."""


@app.command(epilog=example("mainspring version"))
def version() -> None:
    """Print the version."""
    output.console.print(__version__, highlight=False)


command = typer.main.get_command(app)


def main() -> None:
    """Run the command line; every error of ours is one sentence, never a traceback."""
    try:
        command(prog_name="mainspring")
    except MainspringError as error:
        output.errors.print(Text.assemble(("error: ", "red"), str(error)), soft_wrap=True)
        sys.exit(1 if is_not_done(error) else 2)


def is_not_done(error: MainspringError) -> bool:
    """Whether the command was sound, and could not be done all the same."""
    if isinstance(error, ApiError):
        return error.status in _NOT_DONE_STATUS
    return isinstance(error, _NOT_DONE)
