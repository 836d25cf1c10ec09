"""JSON as PostgreSQL may hold it, which knows larger numbers than the programs that read it."""

import json
from decimal import Decimal
from typing import Any

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MOST_DIGITS = 20


def read(text: str) -> Any:
    """The value; a whole number beyond 64 bits is a Decimal, which no payload can hold."""
    return json.loads(text, parse_int=_whole)


def _whole(text: str) -> int | Decimal:
    # The length first: Python refuses to make an integer of thousands of digits.
    if len(text.lstrip("-")) > _MOST_DIGITS:
        return Decimal(text)
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else Decimal(text)
