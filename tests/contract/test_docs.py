"""Documents: whatever a user can name is documented, and every Python example compiles."""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mainspring.cli.main import command as command_line
from mainspring.domain.errors.database import all_errors
from mainspring.domain.types import JobState
from mainspring.settings.model import FIELDS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON_BLOCK = re.compile(r"^([ \t]*)```python[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def commands(command: Any, path: str = "mainspring") -> Iterator[str]:
    """Every command a user can type, spelt in full; hidden ones are nobody's business."""
    if command.hidden:
        return
    children = getattr(command, "commands", {})
    if not children:
        yield path
    for name, child in children.items():
        yield from commands(child, f"{path} {name}")


def missing(words: Iterable[str], text: str) -> list[str]:
    """The words that do not stand in the text whole."""
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def unquoted(words: Iterable[str], text: str) -> list[str]:
    """The words that do not stand in the text between backquotes."""
    return [word for word in words if f"`{word}`" not in text]


def python_blocks(text: str) -> Iterator[str]:
    for block in PYTHON_BLOCK.finditer(text):
        yield textwrap.dedent(block[2])


def compile_example(source: str, page: str) -> None:
    compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def prose() -> str:
    return "\n".join(page.read_text() for page in PAGES)


def test_every_command_is_documented():
    assert missing(commands(command_line), prose()) == []


def test_every_setting_is_documented():
    assert unquoted(FIELDS, (REFERENCE / "settings.md").read_text()) == []


def test_every_error_code_is_documented():
    codes = {error.code for error in all_errors()}

    assert unquoted(sorted(codes), (REFERENCE / "errors.md").read_text()) == []


def test_every_error_has_a_code_of_its_own():
    codes = [error.code for error in all_errors()]

    assert sorted(codes) == sorted(set(codes))


def test_every_job_state_is_documented():
    assert unquoted(JobState, prose()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_example_compiles(page):
    for source in python_blocks(page.read_text()):
        compile_example(source, page.name)


def test_an_undocumented_command_is_noticed():
    cli, jobs = typer.Typer(), typer.Typer()
    cli.command("up")(lambda: None)
    cli.command("secret", hidden=True)(lambda: None)
    jobs.command("cancel")(lambda: None)
    cli.add_typer(jobs, name="jobs")

    assert missing(commands(typer.main.get_command(cli)), "`mainspring upgrade`") == [
        "mainspring up",
        "mainspring jobs cancel",
    ]


def test_an_undocumented_word_is_noticed():
    assert unquoted(["queued", "lease_seconds"], "`queued`, lease_seconds") == ["lease_seconds"]


def test_every_python_block_is_found():
    page = "```python\na = 1\n```\n- item\n\n  ```python title=x\n  b = 2\n  ```\n```sql\nc\n```\n"

    assert list(python_blocks(page)) == ["a = 1\n", "b = 2\n"]


def test_a_broken_example_is_noticed():
    compile_example("result = await job.result()\n", "page.md")
    with pytest.raises(SyntaxError):
        compile_example("def broken(:\n", "page.md")
