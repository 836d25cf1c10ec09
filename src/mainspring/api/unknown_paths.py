"""What is said of a path or a method that the API does not have."""

import re
from collections.abc import Iterable

from mainspring.domain.suggestions import closest

PREFIX = "/api/v1"
_PLACEHOLDER = re.compile(r"\{\w+(?::\w+)?\}")
_LONGEST_SHOWN = 200


def no_such_path(path: str, templates: Iterable[str]) -> str:
    """Names the whole path, and the one that may have been meant. The templates are relative to
    the prefix of the API."""
    asked = path.removeprefix(PREFIX)[:_LONGEST_SHOWN]
    meant = closest(asked, {_filled_in(each, asked.split("/")) for each in templates})
    hint = "" if meant is None else f"; did you mean {PREFIX}{meant}?"
    return f"there is no path {_shown(path)}{hint}"


def no_such_method(method: str, path: str, methods: Iterable[str]) -> str:
    return f"{_shown(path)} does not take {method}; use {' or '.join(sorted(methods))}"


def _filled_in(template: str, parts: list[str]) -> str:
    """The template with what the path has in its places; as it is where the path is shorter."""
    own = template.split("/")
    pairs = zip(own, [*parts, *own[len(parts) :]], strict=False)
    return "/".join(given if _PLACEHOLDER.fullmatch(each) else each for each, given in pairs)


def _shown(path: str) -> str:
    short = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}..."
    return short if short.isprintable() else repr(short)
