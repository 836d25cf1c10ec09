"""Results, checkpoints and progress as JSON text, within their limits."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from mainspring.domain.errors import InvalidPayload, PayloadTooLarge
from mainspring.domain.jobs.options import MAX_RESULT_BYTES, holds_nul
from mainspring.domain.secrets.paths import MARKED_NAME, USES_MARK
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor


class UnstorableResult(Exception):
    """The handler returned something that is not JSON, or too much of it."""


class EncodedResult(NamedTuple):
    """A result that `encode_result` has already seen, in another process."""

    text: bytes | None


def encode_result(result: Any, redactor: Redactor = NO_SECRETS) -> bytes | None:
    """JSON text without secrets; None for None, so that a job without a result stores nothing."""
    if result is None:
        return None
    if isinstance(result, EncodedResult):
        return result.text
    try:
        return encode("result", result, redactor, limit=MAX_RESULT_BYTES)
    except (InvalidPayload, PayloadTooLarge) as error:
        if isinstance(error.__cause__, TypeError):
            raise UnstorableResult(
                f"the handler returned a {type(result).__name__} that is not JSON "
                f"({error.__cause__}); return a dict, list, str, number, bool or None"
            ) from error
        raise UnstorableResult(str(error)) from error


def encode_answer(answer: Mapping[str, Any] | None) -> bytes | None:
    """What a failed attempt returned, without secrets as it is; None for what cannot be stored,
    since how the job ended matters more."""
    try:
        return encode_result(answer)
    except UnstorableResult:
        return None


def encode(what: str, value: Any, redactor: Redactor, *, limit: int) -> bytes:
    """JSON text of at most `limit` bytes without secrets; raises InvalidPayload or
    PayloadTooLarge."""
    try:
        encoded = orjson.dumps(value)
    except TypeError as error:
        raise InvalidPayload(f"the {what} is not JSON: {error}") from error
    # First of all: the other checks take their time with much text.
    _ensure_size(what, encoded, limit)
    if b"\\u0000" in encoded and holds_nul(value):
        raise InvalidPayload(f"the {what} contains a NUL byte, which PostgreSQL cannot store")
    if MARKED_NAME in encoded:
        raise InvalidPayload(f"the {what} {USES_MARK}")
    if redactor:
        encoded = orjson.dumps(redactor.value(orjson.loads(encoded)))
        _ensure_size(what, encoded, limit)
    return encoded


def _ensure_size(what: str, encoded: bytes, limit: int) -> None:
    if len(encoded) > limit:
        raise PayloadTooLarge(len(encoded), limit, what=what)
