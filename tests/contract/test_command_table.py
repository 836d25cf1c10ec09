"""The docstrings of the modules of commands say which commands there are."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from mainspring import cli
from mainspring.cli.main import COMMANDS, Entry, command, read_commands

# What takes long to import and no command needs to print its help or to list jobs.
SLOW = ("fastapi", "httpx", "structlog", "holidays", "jsonschema_rs", "uvicorn", "yaml", "cronsim")


def first_sentence(text: str) -> str:
    """As far as a list of commands shows it."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).split(". ")[0].rstrip(".") + "."


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_docstring_has_the_help_of_the_command(entry: Entry):
    assert entry.help == first_sentence(command.commands[entry.name].help or "")


def test_a_module_has_no_command_that_its_docstring_lacks():
    known = {entry.name for entry in COMMANDS}
    for entry in COMMANDS:
        module = import_module(f"mainspring.cli.{entry.module}")
        assert set(typer.main.get_group(module.app).commands) <= known


def test_every_module_with_commands_names_them():
    known = {entry.module for entry in COMMANDS} | {"main", "secrets"}
    for path in Path(cli.__path__[0]).glob("*.py"):
        assert path.stem in known or "typer.Typer(" not in path.read_text(), path.stem


def test_a_new_module_needs_no_other_change(tmp_path: Path):
    (tmp_path / "notes.py").write_text('"""`mainspring notes`: Manage notes.\n\nMore."""\n')
    (tmp_path / "up.py").write_text('"""`mainspring up`: Start.\n\n`mainspring at`: Say.\n"""\n')
    (tmp_path / "output.py").write_text('"""How `mainspring up` prints."""\n')

    assert read_commands(tmp_path) == [
        Entry("up", "up", "Start."),
        Entry("at", "up", "Say."),
        Entry("notes", "notes", "Manage notes."),
    ]


@pytest.mark.parametrize("words", [["version"], ["--help"], ["jobs", "list", "--help"]])
def test_a_short_command_imports_nothing_that_takes_long(words: list[str]):
    run = (
        "import sys\n"
        "from mainspring.cli.main import command\n"
        f"try:\n    command({words!r}, prog_name='mainspring')\n"
        "except SystemExit:\n    pass\n"
        f"print(*[name for name in {SLOW!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stderr.split() == []
