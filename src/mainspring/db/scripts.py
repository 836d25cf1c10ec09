"""SQL scripts taken apart into statements, and which of them lock a view or a table."""

import hashlib
import re
from collections.abc import Iterator

_PIECE = re.compile(
    r"""
      --[^\n]* | /\*.*?\*/
    | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$
    | (?P<end> ; )
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENT = re.compile(r"--[^\n]*")
_VIEW = re.compile(r"create or replace view (?P<view>mainspring\.\w+)", re.IGNORECASE)
_TRIGGER = re.compile(
    r"create or replace trigger (?P<trigger>\w+)\b.*?\son (?P<table>mainspring\.\w+)",
    re.IGNORECASE | re.DOTALL,
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def without_comments(script: str) -> str:
    """The script as far as it decides what the database looks like; good for comparing only."""
    return " ".join(_COMMENT.sub("", script).split())


def statements(script: str) -> Iterator[str]:
    """The statements in order, each with the comments before it."""
    start = 0
    for piece in _PIECE.finditer(script):
        if piece["end"]:
            yield script[start : piece.end()]
            start = piece.end()
    if without_comments(script[start:]):
        yield script[start:]


def locked_object(statement: str) -> str | None:
    """The view or trigger that the statement replaces, and for that locks; None for all others."""
    code = _COMMENT.sub("", statement).strip()
    if view := _VIEW.match(code):
        return f"view {view['view']}"
    if trigger := _TRIGGER.match(code):
        return f"trigger {trigger['trigger']} on {trigger['table']}"
    return None
