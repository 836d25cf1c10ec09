"""Payloads on their way to workers over the API."""

from contextlib import suppress
from typing import Any

import orjson

from mainspring.domain.documents import is_deeper
from mainspring.domain.errors import InvalidPayload

# Well below what the encoder of answers takes.
_DEEPEST = 200


def read_payload(text: str) -> Any:
    """Raises InvalidPayload for one that could not be sent on; SQL callers can nest deeper."""
    payload = None
    with suppress(orjson.JSONDecodeError):
        payload = orjson.loads(text)
    may_be_deep = text.count("{") + text.count("[") > _DEEPEST
    if payload is None or (may_be_deep and is_deeper(payload, _DEEPEST)):
        raise InvalidPayload(
            f"the payload is nested more than {_DEEPEST} levels deep, which HTTP workers cannot "
            "receive; flatten it"
        )
    return payload
