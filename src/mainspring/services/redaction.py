"""Words that people choose for a job, kept free of the secrets of its payload.

Tags, correlation ids and reasons are redacted. A key says which jobs belong together, which a
redacted one could not, so one with a secret in it is refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from mainspring.db.plans import Plan, Statement
from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.secrets.paths import Path, secrets_in
from mainspring.domain.secrets.redaction import Redactor
from mainspring.domain.types import JobId, TenantId
from mainspring.services.secrets import Owner, key_ring
from mainspring.settings import Settings
from mainspring.store import secrets as store
from mainspring.store.rows.secrets import read_paths

_KEYS = ("dedupe_key", "idempotency_key", "limit_key")
# A shorter text may be a part of another word; then it counts only as a word of its own.
_LONG = 8


def shown_options(
    payloads: Iterable[Any],
    paths: tuple[Path, ...],
    options: EnqueueOptions,
    *,
    dedupe_keys: Sequence[str | None] | None = None,
) -> EnqueueOptions:
    """The options without the secrets of the payloads; raises InvalidOption for a key that has
    one."""
    keys = [(name, getattr(options, name)) for name in _KEYS]
    keys += [("dedupe_keys", key) for key in dedupe_keys or ()]
    if not (options.tags or options.correlation_id or any(key for _, key in keys)):
        return options
    secrets = {secret for payload in payloads for secret in secrets_in(payload, paths)}
    if not secrets:
        return options
    _ensure_none(keys, secrets)
    redactor = Redactor(secrets)
    correlation_id = options.correlation_id
    return replace(
        options,
        tags=tuple(redactor.text(tag) for tag in options.tags),
        correlation_id=correlation_id and redactor.text(correlation_id),
    )


def _ensure_none(keys: Iterable[tuple[str, str | None]], secrets: set[str]) -> None:
    whole = "|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True))
    word = re.compile(rf"(?<![^\W_])(?:{whole})(?![^\W_])", re.IGNORECASE)
    redactor = Redactor(secret for secret in secrets if len(secret) >= _LONG)
    for name, key in keys:
        if key and (word.search(key) or redactor.text(key) != key):
            raise InvalidOption(
                name,
                "contains the value of a secret field of the payload, and keys are shown; use "
                "another value, or dedupe_by='content' to recognize equal payloads",
            )


def shown_reason(
    reason: str,
    job_id: JobId,
    *,
    tenant_id: TenantId,
    settings: Settings,
    connection: object = None,
) -> Plan[str]:
    """What a person says of a live job, without the secrets of its payload."""
    if not reason:
        return reason
    rows = yield Statement(store.secrets_of_job(tenant_id, job_id), connection)
    if not rows:
        return reason
    definition, paths, payload = rows[0]
    real = key_ring(settings).readable_secrets(orjson.loads(payload), Owner(tenant_id, definition))
    return Redactor(real.secrets | secrets_in(real.payload, read_paths(paths))).tail(reason)
