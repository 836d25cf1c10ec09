"""The SQL catalogue: named, scoped, explained, static statements, one file per noun.

    -- name: cancel_queued
    -- scope: tenant
    -- Cancels a job that has not started.
    update mainspring.jobs set state = 'canceled' where job_id = %(job_id)s;

Between statements only comments may stand, so a misspelt header is an error and never a
statement that silently goes missing.

A statement whose result is `*` of something gets a column more when an upgrade adds one, and the
server refuses to run what was prepared before. `has_open_columns` tells these statements apart.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise, takewhile
from typing import Never

from mainspring.domain.suggestions import closest

_NAME = re.compile(r"--\s*name:")
_SCOPE = re.compile(r"--\s*scope:(.*)")
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

# A word is one piece, so that the e at the end of rate'...' does not open an escape string.
_PIECE = re.compile(
    r"""
      (?P<comment> \s*--[^\n]* )
    | (?P<literal> [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
                 | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$ )
    | (?P<end> ; )
    | (?P<placeholder> %% | %\([a-z]\w*\)[sbt] )
    | (?P<refused> /\* | ['"%] )
    | (?P<code> \w+ | \s+ | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_REFUSED = {
    "/*": "a block comment is not part of the format; use --",
    "%": "% must be part of a placeholder like %(name)s; write %% for the character",
    "'": "a quote is not closed",
    '"': "a quote is not closed",
}


# A star that stands for columns, and so no multiplication, outside of any parentheses.
_COLUMNS = re.compile(r"(?:\bselect|\breturning|[.,])\s*\*", re.IGNORECASE)
_NESTED = re.compile(r"\([^()]*\)")


class Scope(StrEnum):
    """Whether a statement stays inside one tenant or serves the system as a whole."""

    TENANT = "tenant"
    SYSTEM = "system"


class StatementError(Exception):
    """A query file is missing or breaks the format; lines count from 1."""

    def __init__(self, origin: str, line: int, problem: str) -> None:
        super().__init__(f"{origin}:{line}: {problem}")
        self.origin, self.line, self.problem = origin, line, problem


@dataclass(frozen=True, slots=True)
class Statement:
    """`sql` has no comments and no final semicolon.

    Send it with parameters, `{}` if it takes none: only then does psycopg read `%%` as `%`.
    """

    name: str
    scope: Scope
    prose: str
    sql: str


class Catalogue(Mapping[str, Statement]):
    """The statements of one file by name, in the order of the file. Each is read on first use: a
    short command uses few of them."""

    def __init__(self, origin: str, blocks: Mapping[str, "_Block"]) -> None:
        self._origin = origin
        self._blocks = dict(blocks)
        self._statements: dict[str, Statement] = {}

    def __getitem__(self, name: str) -> Statement:
        if name not in self._blocks:
            raise KeyError(f"{self._origin} has no statement {name!r}{self._hint(name)}")
        if name not in self._statements:
            self._statements[name] = _statement(self._blocks[name])
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def _hint(self, name: str) -> str:
        near = closest(name, self._blocks)
        return f"; did you mean {near!r}?" if near else ""


# Bounded, since handlers send statements of their own on our connections.
@lru_cache(maxsize=1000)
def has_open_columns(sql: str) -> bool:
    """Whether what the statement returns depends on the columns that a view or table has by now."""
    count = 1
    while count:
        sql, count = _NESTED.subn("", sql)
    return _COLUMNS.search(sql) is not None


@cache
def load(noun: str) -> Catalogue:
    """The catalogue in `sql/queries/<noun>.sql`, read once per process."""
    origin = f"sql/queries/{noun}.sql"
    try:
        text = (resources.files("mainspring") / origin).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StatementError(origin, 1, "there is no such file") from None
    return _catalogue(text, origin)


def parse(text: str, origin: str) -> Catalogue:
    """Read all of a query file's text; `origin` is the name that errors give it."""
    catalogue = _catalogue(text, origin)
    for name in catalogue:
        catalogue[name]
    return catalogue


def _catalogue(text: str, origin: str) -> Catalogue:
    blocks: dict[str, _Block] = {}
    for block in _blocks(text, origin):
        name = _name(block)
        if name in blocks:
            block.refuse(0, f"{name} is already the name of another statement")
        blocks[name] = block
    return Catalogue(origin, blocks)


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines from one name line up to the next; offsets count from the name line, at 0."""

    origin: str
    first_line: int
    lines: list[str]

    def refuse(self, offset: int, problem: str) -> Never:
        raise StatementError(self.origin, self.first_line + offset, problem)


@dataclass(frozen=True, slots=True)
class _Piece:
    offset: int
    kind: str
    text: str


def _blocks(text: str, origin: str) -> Iterator[_Block]:
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if _NAME.match(line)]
    first = starts[0] if starts else len(lines)
    _require_comments_only(_Block(origin, 1, lines[:first]))
    for start, end in pairwise([*starts, len(lines)]):
        yield _Block(origin, start + 1, lines[start:end])


def _require_comments_only(preamble: _Block) -> None:
    for offset, line in enumerate(preamble.lines):
        if line.strip() and not line.lstrip().startswith("--"):
            preamble.refuse(offset, "a statement must start with '-- name: snake_case'")


def _statement(block: _Block) -> Statement:
    name, scope, comments = _name(block), _scope(block), _comments(block)
    sql = _sql(block, 2 + len(comments))
    return Statement(name=name, scope=scope, prose=" ".join(filter(None, comments)), sql=sql)


def _name(block: _Block) -> str:
    name = block.lines[0].partition(":")[2].strip()
    if not _SNAKE_CASE.fullmatch(name):
        block.refuse(0, f"the name {name!r} is not snake_case")
    return name


def _scope(block: _Block) -> Scope:
    header = _SCOPE.match("".join(block.lines[1:2]))
    if header is None:
        block.refuse(1, "'-- scope: tenant' or '-- scope: system' must follow the name")
    scope = header[1].strip()
    if scope not in set(Scope):
        block.refuse(1, f"the scope {scope!r} is neither tenant nor system")
    return Scope(scope)


def _comments(block: _Block) -> list[str]:
    lines = takewhile(lambda line: line.startswith("--"), block.lines[2:])
    comments = [line.lstrip("-").strip() for line in lines]
    if not any(comments):
        block.refuse(2, "a line of prose must follow the scope")
    return comments


def _sql(block: _Block, offset: int) -> str:
    code: list[str] = []
    pieces = _pieces(block, offset)
    for piece in pieces:
        if piece.kind == "end":
            break
        code.append(piece.text)
    else:
        block.refuse(0, "the statement does not end with ';'")
    _require_blank(block, pieces)
    return "".join(code).strip() or block.refuse(offset, "the statement is empty")


def _pieces(block: _Block, offset: int) -> Iterator[_Piece]:
    for match in _PIECE.finditer("\n".join(block.lines[offset:])):
        piece = _Piece(offset, str(match.lastgroup), match[0])
        if problem := _problem(piece):
            block.refuse(offset, problem)
        if piece.kind != "comment":
            yield piece
        offset += piece.text.count("\n")


def _problem(piece: _Piece) -> str | None:
    if piece.kind == "literal" and "%" in piece.text.replace("%%", ""):
        return "inside quotes % must be doubled, and a placeholder cannot be used there"
    return _REFUSED[piece.text] if piece.kind == "refused" else None


def _require_blank(block: _Block, rest: Iterator[_Piece]) -> None:
    for piece in rest:
        if piece.text.strip():
            block.refuse(piece.offset, "a second statement starts without its '-- name:' line")
