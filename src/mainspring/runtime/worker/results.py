"""Results as JSON text."""

from typing import Any

import orjson

from mainspring.domain.jobs.options import holds_nul
from mainspring.domain.secrets.paths import MARKED_NAME, USES_MARK
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor


class UnstorableResult(Exception):
    """The handler returned something that is not JSON."""


def encode_result(result: Any, redactor: Redactor = NO_SECRETS) -> bytes | None:
    """JSON text without secrets; None for None, so that a job without a result stores nothing."""
    if result is None:
        return None
    try:
        encoded = orjson.dumps(result)
    except TypeError as error:
        raise UnstorableResult(
            f"the handler returned a {type(result).__name__} that is not JSON ({error}); return a "
            "dict, list, str, number, bool or None"
        ) from error
    if b"\\u0000" in encoded and holds_nul(result):
        raise UnstorableResult("the result contains a NUL byte, which PostgreSQL cannot store")
    if MARKED_NAME in encoded:
        raise UnstorableResult(f"the result {USES_MARK}")
    return redacted(encoded, redactor)


def redacted(encoded: bytes, redactor: Redactor) -> bytes:
    """The same JSON without secrets."""
    return orjson.dumps(redactor.value(orjson.loads(encoded))) if redactor else encoded
