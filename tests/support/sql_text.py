"""SQL files as text: split into statements, so that tests can measure what they create."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A semicolon ends a statement unless it stands in one of the others.
_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|;", re.DOTALL)
_FUNCTION = re.compile(r"create (?:or replace )?function (?:mainspring\.)?(\w+)", re.IGNORECASE)
_COMMENT = re.compile(r"comment on function mainspring\.(\w+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, from its first word to its semicolon."""

    text: str
    line: int
    comment: str
    """The comment right above it."""

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


@dataclass(frozen=True, slots=True)
class SqlFunction:
    name: str
    lines: int
    is_commented: bool


def statements(text: str) -> Iterator[Statement]:
    start = 0
    for piece in _PIECE.finditer(text):
        if piece.group() == ";":
            yield _statement(text, start, piece.end())
            start = piece.end()
    assert not without_comments(text[start:]).strip(), "a statement has no semicolon"


def functions(text: str) -> list[SqlFunction]:
    """What `create function` statements make; commented above or by `comment on function`."""
    noted = {found[1] for each in statements(text) if (found := _COMMENT.match(each.text))}
    return [
        SqlFunction(found[1], each.lines, bool(each.comment) or found[1] in noted)
        for each in statements(text)
        if (found := _FUNCTION.match(each.text))
    ]


def without_comments(text: str) -> str:
    return _PIECE.sub(lambda piece: "" if _is_comment(piece.group()) else piece.group(), text)


def without_literals(text: str) -> str:
    """The text with nothing in its strings and comments, and as many lines as before."""
    return _PIECE.sub(lambda piece: _blank(piece.group()), text)


def _blank(piece: str) -> str:
    # The body of a function is SQL as well.
    if piece.startswith("$"):
        mark = piece[: piece.index("$", 1) + 1]
        return mark + without_literals(piece[len(mark) : -len(mark)]) + mark
    return piece if piece == ";" else "\n" * piece.count("\n")


def _statement(text: str, start: int, end: int) -> Statement:
    above = re.match(r"(?:\s|--[^\n]*(?:\n|$))*", text[start:end])
    assert above is not None
    first = start + above.end()
    comment = re.search(r"((?:--[^\n]*\n)+)\Z", above.group())
    return Statement(text[first:end], text.count("\n", 0, first) + 1, comment[1] if comment else "")


def _is_comment(piece: str) -> bool:
    return piece.startswith(("--", "/*"))
