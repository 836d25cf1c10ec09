"""The command line: which commands there are, errors and exit codes.

Exit codes: 0 done; 1 what was requested did not succeed or was not found; 2 the command, a
setting or the database is wrong, and the message says how.
"""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

from mainspring.cli.config_option import ConfigFile
from mainspring.domain.errors import MainspringError

if TYPE_CHECKING:
    from typer._click import Command


class Entry(NamedTuple):
    """A command or a group of commands; `help` repeats what the module says of itself, so that
    the list of commands can be printed without importing all of them."""

    name: str
    module: str
    help: str


COMMANDS = (
    Entry("up", "roles", "Start a server, a scheduler, a worker and, if needed, the database."),
    Entry("worker", "roles", "Run a worker until SIGTERM or Ctrl-C."),
    Entry("scheduler", "roles", "Run a scheduler until SIGTERM or Ctrl-C; any number may run."),
    Entry("server", "roles", "Serve the REST API until SIGTERM or Ctrl-C; any number may run."),
    Entry("login", "login", "Log in to a server."),
    Entry("logout", "login", "Forget a server and its token."),
    Entry("profiles", "login", "List and select the servers you have logged in to."),
    Entry("top", "top", "Watch queues, workers and jobs by state until Ctrl-C."),
    Entry("completion", "completion", "Print a shell completion script."),
    Entry("login-link", "tokens", "Print a one-time login link, valid for 15 minutes."),
    Entry("enqueue", "jobs", "Enqueue a job."),
    Entry("jobs", "jobs", "Manage jobs."),
    Entry("schedules", "schedules", "Manage schedules."),
    Entry("definitions", "definitions", "Manage definitions."),
    Entry("limits", "limits", "Manage shared limits on concurrency and rate."),
    Entry("approvals", "approvals", "List, approve and reject jobs that await approval."),
    Entry("flows", "flows", "Manage flows of dependent jobs."),
    Entry("events", "events", "Emit and inspect events."),
    Entry("triggers", "triggers", "Manage triggers, which turn events into jobs."),
    Entry("tenants", "tenants", "Manage tenants."),
    Entry("people", "tokens", "Manage the people who may log in."),
    Entry("tokens", "tokens", "Manage API tokens."),
    Entry("workers", "workers", "List workers."),
    Entry("queues", "workers", "List queues."),
    Entry("audit", "audit", "Show the audit log."),
    Entry("admin", "admin", "Commands for admins and operators."),
    Entry("cron", "cron", "Try cron expressions."),
    Entry("config", "config", "Show, change and check settings."),
    Entry("migrate", "migrate", "Upgrade the database schema to this version."),
    Entry("version", "version", "Print the version."),
)


class LazyCommands(Mapping[str, Any]):
    """The commands of the table; a module is imported when one of its commands is needed."""

    def __init__(self) -> None:
        self._modules = {entry.name: entry.module for entry in COMMANDS}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> "Command":
        if name not in self._loaded:
            module = import_module(f"mainspring.cli.{self._modules[name]}")
            self._loaded.update(typer.main.get_group(module.app).commands)
        command: Command = self._loaded[name]
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class LazyGroup(TyperGroup):
    """The whole command line."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": LazyCommands()})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands is printed from the table."""
        whole = self.commands
        self.commands = {each.name: TyperCommand(each.name, help=each.help) for each in COMMANDS}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = whole


app = typer.Typer(
    name="mainspring",
    cls=LazyGroup,
    help="Background jobs and schedules for teams that already run PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def take_config(config_file: ConfigFile = None) -> None:
    """What every command takes; the option itself says which file is read."""


command = cast("LazyGroup", typer.main.get_command(app))


def main() -> None:
    """Run the command line; every error of ours is one sentence, never a traceback."""
    try:
        command(prog_name="mainspring")
    except MainspringError as error:
        from mainspring.cli.errors import exit_code, print_error

        print_error(error)
        sys.exit(exit_code(error))
