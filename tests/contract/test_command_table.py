"""The table of commands says what the modules of the commands say of themselves."""

import subprocess
import sys

import pytest
import typer

from mainspring.cli.main import COMMANDS, Entry, command

# What takes long to import and no command needs to print its help or to list jobs.
SLOW = ("fastapi", "httpx", "structlog", "holidays", "jsonschema_rs", "uvicorn", "yaml", "cronsim")


def first_sentence(text: str) -> str:
    """As far as a list of commands shows it."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).split(". ")[0].rstrip(".") + "."


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_table_has_the_help_of_the_command(entry: Entry):
    assert entry.help == first_sentence(command.commands[entry.name].help or "")


def test_a_module_has_no_command_that_the_table_lacks():
    known = {entry.name for entry in COMMANDS}
    for entry in COMMANDS:
        module = sys.modules[f"mainspring.cli.{entry.module}"]
        assert set(typer.main.get_group(module.app).commands) <= known


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
