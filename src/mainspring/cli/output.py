"""How things look on a terminal, and as JSON or YAML for programs."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import orjson
import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from mainspring.cli.listings import Listing, escaped, is_piped
from mainspring.domain.errors import InputError
from mainspring.domain.types import JobState

T = TypeVar("T")

STATE_STYLES = {
    JobState.AWAITING_APPROVAL: "yellow",
    JobState.BLOCKED: "yellow",
    JobState.QUEUED: "cyan",
    JobState.RUNNING: "blue",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.DEAD_LETTER: "bold red",
    JobState.CANCELED: "dim",
}

# Names and payloads are printed as they are, wherever they are printed; a line that is too long is
# broken by the terminal, so that it is whole in a pipe and when it is copied.
console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


class Format(StrEnum):
    """How a command prints what it was asked for."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputFormat = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]


@dataclass(frozen=True, slots=True)
class Out:
    """Prints for people or for programs, as the command was asked to."""

    format: Format

    @classmethod
    def chosen(cls, chosen: Format, *, as_json: bool) -> "Out":
        return cls(Format.JSON if as_json else chosen)

    @property
    def is_for_people(self) -> bool:
        return self.format is Format.TABLE

    def show(self, value: T, show: Callable[[T], None]) -> None:
        """Call `show` for people; for programs print the value."""
        if self.is_for_people:
            show(value)
        elif self.format is Format.JSON:
            print_json(value)
        else:
            print_yaml(value)

    def say(self, value: object, sentence: str) -> None:
        """A sentence for people; for programs the value."""
        self.show(value, lambda _: say(sentence))

    def rows(self, items: Sequence[T], listing: Listing[T], *, nothing: str) -> None:
        """A list for people, or the words for where there is nothing; for programs the items."""

        def show(found: Sequence[T]) -> None:
            if found or is_piped(console):
                console.print(listing(found))
            if not found:
                remark(nothing)

        self.show(items, show)


def remark(sentence: Text | str) -> None:
    """What belongs to a list but is no row of it; in a pipe it would be taken for one."""
    (errors if is_piped(console) else console).print(sentence)


def say(sentence: str) -> None:
    console.print(sentence)


def say_id(made: object, sentence: str) -> None:
    """A sentence on a terminal; in a pipe nothing but the id."""
    say(str(made) if is_piped(console) else sentence)


def print_json(value: Any) -> None:
    text = orjson.dumps(plain(value), default=str, option=orjson.OPT_INDENT_2).decode()
    console.print(text)


def print_yaml(value: Any) -> None:
    import yaml

    # Through JSON, so that both say the same.
    facts = orjson.loads(orjson.dumps(plain(value), default=str))
    text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=1000)
    console.print(text.rstrip("\n"))


def plain(value: Any) -> Any:
    """What the client gave, as the server had said it."""
    match value:
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    # Without naming pydantic's class, whose import takes a while.
    return (
        value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value
    )


class Facts:
    """Names and what belongs to them, one below the other; in a pipe a tab is between them."""

    def __init__(self, facts: Iterable[tuple[str, Text | str]]) -> None:
        self._facts = list(facts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if is_piped(console):
            for name, value in self._facts:
                yield Segment(f"{name}\t{escaped(str(value))}\n")
            return
        from rich.table import Table

        made = Table(box=None, show_header=False, pad_edge=False)
        made.add_column(style="dim", no_wrap=True)
        made.add_column(overflow="fold")
        for name, value in self._facts:
            made.add_row(name, value)
        yield made


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is destroyed, unless that was said already; a pipe may answer."""
    if is_sure:
        return
    try:
        is_sure = typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        errors.print()
        problem = "there is no terminal to ask on; pass --yes to confirm"
        raise InputError(problem) from None
    if not is_sure:
        raise typer.Abort


Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
