"""A case, and the ways to send an input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.domain.definitions import Definition
from tests.budgets.bench import Bench, Refusal

KIB, MIB = 1024, 1024 * 1024
DAY = 24 * 3600
FACTOR = 100
Send = Callable[[Bench, int], Refusal | None]


@dataclass(frozen=True)
class Case:
    """One way to send the input of a row. `limit` units are accepted; more are refused with the
    code and a text. `most` is sent in place of a hundred times the limit, where that cannot be."""

    row: str
    way: str
    limit: int
    send: Send
    code: str
    text: str
    most: int | None = None

    @property
    def far(self) -> int:
        return self.most or self.limit * FACTOR

    def __str__(self) -> str:
        return f"{self.row} ({self.way})"


def text(length: int) -> str:
    return "x" * length


def payload(size: int) -> dict[str, str]:
    """An object of so many bytes, as PostgreSQL writes it."""
    return {"x": text(size - len('{"x": ""}'))}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def post(path: str, make: Callable[[Bench, int], Any], role: str = "operator") -> Send:
    return lambda bench, count: bench.rest("POST", path, make(bench, count), role=role)


def query(statement: str, make: Callable[[Bench, int], list[Any]]) -> Send:
    return lambda bench, count: bench.sql(statement, *make(bench, count))


def python(call: Callable[[Bench, int], object]) -> Send:
    return lambda bench, count: bench.python(lambda: call(bench, count))


def ways(
    row: str, limit: int, sends: list[Send], said: str, *, codes: tuple[str, str, str], **more: Any
) -> list[Case]:
    named = zip(("REST", "SQL", "Python"), sends, codes, strict=True)
    return [Case(row, way, limit, send, code, said, **more) for way, send, code in named]


OPTION = ("422", "MS003", "invalid_option")
DEFINITION = ("422", "MS050", "invalid_definition")


def definition(field: str, make: Callable[[int], Any], **others: Any) -> list[Send]:
    """A field of a definition over REST, SQL and Python."""
    columns = [field, *others]
    marks = ", ".join(["%s"] * len(columns))

    def body(bench: Bench, count: int) -> dict[str, Any]:
        base = {"key": bench.name(), "kind": "sql", "function": "public.noop"}
        return {**base, **others, field: make(count)}

    def row(bench: Bench, count: int) -> list[Any]:
        values = [make(count), *others.values()]
        return [bench.name(), *(Jsonb(each) if isinstance(each, dict) else each for each in values)]

    return [
        post("/definitions", body),
        query(
            f"insert into mainspring.definitions (key, kind, {', '.join(columns)})"
            f" values (%s, 'python', {marks})",
            row,
        ),
        python(lambda bench, count: Definition(bench.name(), **{field: make(count)}, **others)),
    ]


def report(kind: str, make: Callable[[int], Any]) -> Send:
    def send(bench: Bench, count: int) -> Refusal | None:
        path, body = bench.claimed()
        return bench.rest("POST", f"{path}/{kind}", {**body, **make(count)}, role="worker")

    return send
