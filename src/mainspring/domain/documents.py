"""JSON as PostgreSQL may hold it, which knows larger numbers than the programs that read it."""

import json
from decimal import Decimal
from typing import Any

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MOST_DIGITS = 20


def read(text: str) -> Any:
    """The value; a whole number beyond 64 bits is a Decimal, which no payload can hold."""
    return json.loads(text, parse_int=_whole)


def is_deeper(value: Any, depth: int) -> bool:
    """Whether arrays and objects are nested in each other more often than that."""
    level = [value]
    for _ in range(depth + 1):
        inside = [part for part in level if isinstance(part, dict | list)]
        level = [
            item for part in inside for item in (part.values() if isinstance(part, dict) else part)
        ]
        if not inside:
            return False
    return True


def _whole(text: str) -> int | Decimal:
    # The length first: Python refuses to make an integer of thousands of digits.
    if len(text.lstrip("-")) > _MOST_DIGITS:
        return Decimal(text)
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else Decimal(text)
