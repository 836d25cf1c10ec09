"""How things look on a terminal, and as JSON or YAML for programs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

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

# Names and payloads are printed as they are, wherever they are printed.
console = Console(markup=False, emoji=False)
errors = Console(stderr=True, markup=False, emoji=False)


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

    def rows(
        self, items: Sequence[T], table: Callable[[Sequence[T]], Table], *, nothing: str
    ) -> None:
        """A table for people, or the words for where there is nothing; for programs a list."""

        def show(found: Sequence[T]) -> None:
            console.print(table(found) if found else nothing, highlight=False)

        self.show(items, show)


def say(sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    text = orjson.dumps(plain(value), default=str, option=orjson.OPT_INDENT_2).decode()
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_yaml(value: Any) -> None:
    import yaml

    # Through JSON, so that both say the same.
    facts = orjson.loads(orjson.dumps(plain(value), default=str))
    text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=1000)
    console.print(text.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


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


def table(*columns: str, wrap: str | None = None) -> Table:
    """A table without lines; `wrap` is the column that may be cut off."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        made.add_column(name, overflow="ellipsis", no_wrap=name != wrap)
    return made


def facts_table(facts: Iterable[tuple[str, Text | str]]) -> Table:
    """Names and what belongs to them, one below the other."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, value in facts:
        made.add_row(name, value)
    return made


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is destroyed, unless that was said already."""
    if not is_sure:
        typer.confirm(question, abort=True, err=True)


Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def instant(at: datetime | None) -> str:
    """An instant and how long ago it was, or how far away it is."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S %Z} ({relative(at)})"


def relative(at: datetime) -> str:
    return ago(at) if at <= datetime.now(UTC) else f"in {span(at - datetime.now(UTC))}"


def ago(at: datetime) -> str:
    elapsed = datetime.now(UTC) - at
    if elapsed < timedelta(seconds=1):
        return "now"
    return f"{span(elapsed)} ago"


def took(started_at: datetime | None, finished_at: datetime | None) -> str:
    if started_at is None:
        return ""
    return span((finished_at or datetime.now(UTC)) - started_at)


def span(elapsed: timedelta) -> str:
    seconds = max(elapsed.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
