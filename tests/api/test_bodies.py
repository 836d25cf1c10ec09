"""Bodies of requests: how deeply they may be nested."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from mainspring.api.bodies import MOST_LEVELS, read_body
from mainspring.api.errors import Refused
from mainspring.domain.documents import is_deeper

WRAPS: list[Callable[[Any], Any]] = [lambda value: [value], lambda value: {"a": value}]


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("levels", [MOST_LEVELS - 1, MOST_LEVELS, MOST_LEVELS + 1, 5 * MOST_LEVELS])
def test_a_body_is_as_deep_as_whoever_looks_at_every_value_finds_it(levels, wrap):
    value = nested(levels, wrap)
    content = orjson.dumps(value) if levels < 250 else wrapped_text(levels, wrap)

    if is_deeper(value, MOST_LEVELS):
        with pytest.raises(Refused, match="is nested more than 200 levels deep"):
            read_body(content)
    else:
        assert read_body(content) == value


def wrapped_text(levels: int, wrap: Callable[[Any], Any]) -> bytes:
    """The encoder has a limit of its own."""
    before, after = orjson.dumps(wrap(0)).split(b"0")
    return before * levels + b'"leaf"' + after * levels
