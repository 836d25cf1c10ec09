"""The command line: which commands there are, errors and exit codes.

Exit codes: 0 done; 1 what was requested did not succeed or was not found; 2 the command, a
setting or the database is wrong, and the message says how.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer
from typer.core import TyperCommand

from mainspring.cli.command_classes import StrictGroup, make_strict
from mainspring.cli.config_option import ConfigFile, FrontProfile, Version
from mainspring.domain.errors import MainspringError

if TYPE_CHECKING:
    from typer._click import Command


class Entry(NamedTuple):
    """A command or a group of commands."""

    name: str
    module: str
    help: str


# What a newcomer needs; the others follow by name.
_FIRST = ("up", "worker", "scheduler", "server", "enqueue", "jobs", "schedules")
_ENTRY = re.compile(r"^`mainspring ([\w-]+)`: (.+?)$", re.MULTILINE)


def read_commands(folder: Path) -> list[Entry]:
    """The commands that the docstrings of the modules name, a line each: so a new module needs no
    table, and the list of commands can be printed without importing any of them."""
    found = [
        Entry(name, path.stem, help_line)
        for path in folder.glob("*.py")
        for name, help_line in _ENTRY.findall(_docstring(path))
    ]
    return sorted(found, key=lambda entry: (_place(entry.name), entry.name))


def _docstring(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0]


def _place(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


COMMANDS = tuple(read_commands(Path(__file__).parent))


class LazyCommands(Mapping[str, Any]):
    """The commands by name; a module is imported when one of its commands is needed."""

    def __init__(self) -> None:
        self._modules = {entry.name: entry.module for entry in COMMANDS}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> "Command":
        if name not in self._loaded:
            module = import_module(f"mainspring.cli.{self._modules[name]}")
            self._loaded.update(typer.main.get_group(make_strict(module.app)).commands)
        command: Command = self._loaded[name]
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class LazyGroup(StrictGroup):
    """The whole command line."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": LazyCommands()})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands is printed from the docstrings."""
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
def take_options(
    config_file: ConfigFile = None, profile: FrontProfile = None, version: Version = False
) -> None:
    """What may stand in front of every command; the options act by themselves."""


command = cast("LazyGroup", typer.main.get_command(app))


def main() -> None:
    """Run the command line; every error of ours is one sentence, never a traceback."""
    try:
        command(prog_name="mainspring")
    except MainspringError as error:
        from mainspring.cli.errors import exit_code, print_error

        print_error(error)
        sys.exit(exit_code(error))
