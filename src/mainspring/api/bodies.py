"""Bodies of requests as JSON: no NaN, and no depth that a reader further on would stumble over."""

from http import HTTPStatus
from typing import Any

import orjson

from mainspring.api.errors import Refused

# Encoders of answers and the redaction of secrets go a little deeper.
MOST_LEVELS = 200
_ENCODED_LEVELS = 254


def read_body(content: bytes) -> Any:
    """Raises JSONDecodeError where it is no JSON, and Refused where it is nested too deeply."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if "depth" in str(error) or "ecursion" in str(error):
            raise _too_deep() from None
        raise
    may_be_deep = content.count(b"{") + content.count(b"[") > MOST_LEVELS
    if may_be_deep and _is_too_deep(value):
        raise _too_deep()
    return value


def _is_too_deep(value: Any) -> bool:
    """Asks the encoder, which refuses more levels than these: twenty times as fast as to look."""
    for _ in range(_ENCODED_LEVELS - MOST_LEVELS):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def _too_deep() -> Refused:
    return Refused(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid_request",
        f"body: is nested more than {MOST_LEVELS} levels deep; flatten it",
    )
