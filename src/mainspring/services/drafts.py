"""Payloads of which not all is known: of schedules and triggers, and as people edit them."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson

from mainspring.domain.errors import InvalidPayload
from mainspring.domain.secrets.paths import REDACTED, is_encrypted
from mainspring.domain.templates import has_template
from mainspring.services.payloads import Checking, PayloadRules, encode_payload


def checking_draft(draft: Mapping[str, Any], rules: PayloadRules) -> Checking[None]:
    """A step that raises InvalidPayload for what does not fit its definition, whatever becomes of
    the templates and secrets in it that are not known here."""
    text = b"" if rules.schema is None else encode_payload(dict(draft), is_stored=True)
    return Checking(partial(_ensure_draft, text, rules), rules, [text])


def ensure_draft(draft: Mapping[str, Any], rules: PayloadRules) -> None:
    """The same at once, for callers that are in a thread or hold nobody up."""
    checking_draft(draft, rules).run(None)


def _ensure_draft(text: bytes, rules: PayloadRules) -> None:
    if rules.schema is None:
        return
    plain = orjson.loads(text)
    try:
        rules.schema.ensure_draft(plain, _is_open)
    except InvalidPayload:
        for other in rules.others:
            with suppress(InvalidPayload):
                other.ensure_draft(plain, _is_open)
                return
        raise


def _is_open(value: object) -> bool:
    if isinstance(value, str):
        return value == REDACTED or has_template(value)
    return is_encrypted(value)
