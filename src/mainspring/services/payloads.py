"""Payloads as they are stored: encoded, held to the rules of their definition, and encrypted."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from mainspring.domain.errors import InvalidPayload, PayloadTooLarge
from mainspring.domain.jobs.options import MAX_PAYLOAD_BYTES, ensure_payload
from mainspring.domain.schema_costs import MOST_CHECK_STEPS, QUICK_STEPS, count_values
from mainspring.domain.schemas import Schema
from mainspring.domain.secrets.paths import MARKED_NAME, USES_MARK, Path
from mainspring.services.secrets import Owner, encrypt_payload, ensure_real
from mainspring.settings import Settings

_CHUNK = 5000
_BRACE = ord("{")
_NUL = b"\\u0000"
# An even number of backslashes before it stands for backslashes, and what follows for itself.
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# Larger ones are checked in a thread, so that other requests go on meanwhile.
LARGE_BYTES = 64 * 1024
# So that any number of small payloads can be sent together.
_STEPS_OF_EACH = 1000

T = TypeVar("T")
# Dates and the like come back as text, so the handler would get another type than was sent.
_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class PayloadRules(NamedTuple):
    """What a definition says of its payloads."""

    schema: Schema | None = None
    secret_paths: tuple[Path, ...] = ()
    others: tuple[Schema, ...] = ()
    """Schemas that a payload may fit instead."""

    def ensure(self, payload: object) -> None:
        """Raise InvalidPayload for one that does not fit, or was copied from where it is shown."""
        if self.schema is not None:
            _ensure_fits(payload, self.schema, self.others)
        if self.secret_paths:
            ensure_real(payload, self.secret_paths)

    def count_steps(self, texts: Sequence[bytes]) -> int:
        """How many steps it takes at most to check payloads, of which this is the JSON."""
        if self.schema is None or not texts:
            return 0
        each = sum(schema.steps_of_a_value for schema in (self.schema, *self.others))
        # A value and what parts it from the next have two bytes at the least.
        longest = each * (max(map(len, texts)) // 2 + 1)
        if longest <= _STEPS_OF_EACH:
            return longest * len(texts)
        return each * sum(map(count_values, texts))


def ensure_affordable(steps: int, count: int = 1) -> None:
    """Raise InvalidPayload if so many payloads take too many steps to check, before one is."""
    most = MOST_CHECK_STEPS + (count - 1) * _STEPS_OF_EACH
    if steps > most:
        raise InvalidPayload(
            f"checking {'the payload against its' if count == 1 else 'payloads against their'} "
            f"JSON Schema would take up to {steps:,} steps (values times the subschemas that apply "
            f"to each); at most {most:,} are allowed. Send less at a time, or make the schema "
            "simpler, for example with enum instead of anyOf"
        )


def _ensure_fits(payload: object, schema: Schema, others: tuple[Schema, ...]) -> None:
    try:
        if schema.fits(payload):
            return
    except ValueError:
        # A UUID or another value that only its JSON can be checked of.
        payload = orjson.loads(orjson.dumps(payload, option=_STRICT))
    if not any(other.fits(payload) for other in others):
        schema.ensure(payload)


class Checking(Generic[T]):
    """A step of a plan that holds payloads, of which this is the JSON, to rules: in a thread, if
    that takes long and the caller runs an event loop. It is refused here if it would take too long.
    """

    def __init__(
        self,
        work: Callable[[], T],
        rules: PayloadRules,
        texts: Sequence[bytes],
        *,
        is_quick: bool = True,
    ) -> None:
        self._work = work
        steps = rules.count_steps(texts)
        ensure_affordable(steps, len(texts))
        is_small = steps <= QUICK_STEPS and sum(map(len, texts)) <= LARGE_BYTES
        self.is_quick = is_quick and is_small

    def run(self, _: object) -> T:
        return self._work()

    async def arun(self, _: object) -> T:
        if self.is_quick:
            return self._work()
        return await asyncio.to_thread(self._work)


class Prepared(NamedTuple):
    """A payload as it is stored, as a value and as JSON text."""

    value: Any
    text: bytes


def prepare(
    payload: Any,
    rules: PayloadRules,
    owner: Owner,
    *,
    settings: Settings,
    is_compared: bool = False,
    is_checked: bool = True,
    is_stored: bool = False,
) -> Prepared:
    """Encode, check and encrypt a payload; raises what is wrong with it.

    `is_compared` adds fingerprints, by which the database recognises equal payloads. `is_checked`
    is false where only the worker holds the payload to the rules of its definition, `is_stored`
    true where it comes from the database and may hold encrypted values.
    """
    limit = settings.max_payload_bytes
    prepared = Prepared(payload, encode_payload(payload, limit, is_stored=is_stored))
    if is_checked:
        ensure_affordable(rules.count_steps([prepared.text]))
        rules.ensure(payload)
    return encrypt(prepared, rules, owner, settings=settings, is_compared=is_compared)


def encrypt(
    prepared: Prepared,
    rules: PayloadRules,
    owner: Owner,
    *,
    settings: Settings,
    is_compared: bool = False,
) -> Prepared:
    """The same with its secrets encrypted, if there are any and if there are keys."""
    if not rules.secret_paths:
        return prepared
    value = encrypt_payload(
        prepared.value, rules.secret_paths, owner, settings=settings, is_compared=is_compared
    )
    if value is prepared.value:
        return prepared
    return Prepared(value, encode_payload(value, settings.max_payload_bytes, is_stored=True))


def encode_payload(
    payload: object, limit: int = MAX_PAYLOAD_BYTES, *, is_stored: bool = False
) -> bytes:
    """The payload as JSON text that PostgreSQL will take; only one that we made ourselves may hold
    encrypted values."""
    ensure_payload(payload)
    try:
        encoded = orjson.dumps(payload, option=_STRICT)
    except TypeError as error:
        raise InvalidPayload(_explain(payload, error)) from error
    if len(encoded) > limit:
        raise PayloadTooLarge(len(encoded), limit)
    if _NUL in encoded and _ESCAPED_NUL.search(encoded):
        raise InvalidPayload("the payload contains a NUL byte, which PostgreSQL cannot store")
    if not is_stored and MARKED_NAME in encoded:
        raise InvalidPayload(f"the payload {USES_MARK}")
    return encoded


def encode_payloads(payloads: Sequence[Any], limit: int) -> list[bytes]:
    """All at once where all is well, which saves a call a payload; else one by one, to find
    and name what is wrong."""
    try:
        # A copy, because orjson cuts its text from a buffer of some KiB that then stays unused:
        # 400 MB for 100,000 small payloads.
        encoded = [b"%b" % orjson.dumps(payload, None, _STRICT) for payload in payloads]
    except TypeError:
        encoded = []
    if (
        len(encoded) == len(payloads)
        and all(text[0] == _BRACE for text in encoded)
        and max(map(len, encoded), default=0) <= limit
        and not _need_a_look(encoded)
    ):
        return encoded
    return [encode_payload(payload, limit) for payload in payloads]


def _need_a_look(objects: list[bytes]) -> bool:
    """Whether one may hold a NUL, or what marks encrypted values. Looks at many together: as each
    begins with a brace, nothing is found across two."""
    chunks = (b"".join(objects[at : at + _CHUNK]) for at in range(0, len(objects), _CHUNK))
    return any(_NUL in chunk or MARKED_NAME in chunk for chunk in chunks)


def _explain(payload: object, error: TypeError) -> str:
    if isinstance(payload, dict):
        for name, value in payload.items():
            try:
                orjson.dumps({name: value}, option=_STRICT)
            except TypeError:
                return (
                    f"the payload's {name!r} is a {type(value).__name__}, which is not JSON; "
                    "pass strings, numbers, bools, lists or dicts"
                )
    return f"the payload is not JSON: {error}"
