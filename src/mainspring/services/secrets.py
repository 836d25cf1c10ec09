"""Secrets of payloads on their way to the database: checked, and encrypted if there are keys.

    value ─▶ AES-SIV under the first key, bound to tenant, definition and place
          ─▶ {"$mainspring": "encrypted", "key": "1f0c9a2e", "nonce": "...", "value": "..."}

AES-SIV needs no nonce to be safe, which is what makes equal payloads recognisable where they must
be: dedupe by content, idempotency keys and declared schedules are encrypted without one. Everything
else has a random one, so that equal secrets look different.
"""

import base64
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.domain.errors import InvalidPayload, SettingsError
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.secrets.keys import Key, read_keys, write_key
from mainspring.domain.secrets.paths import (
    REDACTED,
    SEAL,
    SEALED,
    Path,
    Place,
    changed_at,
    is_sealed,
    texts_in,
)
from mainspring.domain.templates import has_template
from mainspring.domain.types import JobId, TenantId
from mainspring.services.jobs import Bulk, Request, encode_payload
from mainspring.settings import Settings
from mainspring.store import secrets as store

Run = Callable[[Call], Awaitable[list[tuple[Any, ...]]]]

_NONCE_BYTES = 16
_DEEPEST = 400


class Owner(NamedTuple):
    """Whose payload it is; an encrypted value is worth nothing anywhere else."""

    tenant_id: TenantId
    definition: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A payload with its real values, and the texts that were encrypted in it."""

    payload: Any
    secrets: set[str]
    is_changed: bool


class KeyRing:
    """Encrypts with its first key and decrypts with any."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._ciphers = {key.id: _cipher(key) for key in keys}
        self._first = keys[0].id if keys else None

    def __bool__(self) -> bool:
        return self._first is not None

    def seal(
        self,
        payload: Any,
        paths: tuple[Path, ...],
        owner: Owner,
        *,
        is_repeatable: bool = False,
        leave: Callable[[Any], bool] = lambda _: False,
    ) -> Any:
        """The payload with the values at the paths encrypted; repeatable means that the same value
        becomes the same again. What reads [redacted] stays, for whoever knows what it stands for.
        """

        def seal(value: Any, place: Place) -> Any:
            if is_sealed(value) or value == REDACTED or leave(value):
                return value
            return self._seal(value, owner, place, nonce=None if is_repeatable else _nonce())

        return changed_at(payload, paths, seal) if self else payload

    def open(self, payload: Any, owner: Owner) -> Opened:
        """Raises UnreadableSecret for a value that no key of the ring opens."""
        found: list[Any] = []

        def open_value(sealed: Any, place: Place) -> Any:
            found.append(self._open(sealed, owner, place))
            return found[-1]

        opened = _changed_sealed(payload, open_value)
        return Opened(opened, set(texts_in(found)), is_changed=bool(found))

    def renew(self, payload: Any, owner: Owner) -> Any:
        """The payload with every value under the first key."""

        def renew(sealed: Any, place: Place) -> Any:
            if sealed.get("key") == self._first:
                return sealed
            nonce = _nonce() if "nonce" in sealed else None
            return self._seal(self._open(sealed, owner, place), owner, place, nonce=nonce)

        return _changed_sealed(payload, renew)

    def _seal(
        self, value: Any, owner: Owner, place: Place, *, nonce: bytes | None
    ) -> dict[str, str]:
        if self._first is None:
            raise SettingsError("there are no encryption_keys to encrypt with")
        bound = [_bound(owner, place)] if nonce is None else [_bound(owner, place), nonce]
        data = self._ciphers[self._first].encrypt(orjson.dumps(value), bound)
        told = {} if nonce is None else {"nonce": _text(nonce)}
        return {SEAL: SEALED, "key": self._first, **told, "value": _text(data)}

    def _open(self, sealed: Any, owner: Owner, place: Place) -> Any:
        field = ".".join(map(str, ("payload", *place)))
        cipher = self._ciphers.get(sealed.get("key"))
        if cipher is None:
            raise UnreadableSecret(field, str(sealed.get("key")))
        try:
            nonce = [_bytes(sealed["nonce"])] if "nonce" in sealed else []
            data = cipher.decrypt(_bytes(sealed["value"]), [_bound(owner, place), *nonce])
        except Exception:  # noqa: BLE001 - of a library, and all mean that it is not what we wrote
            raise UnreadableSecret(field, None) from None
        return orjson.loads(data)


@lru_cache(maxsize=8)
def _ring(keys: str) -> KeyRing:
    return KeyRing(read_keys(keys))


def key_ring(settings: Settings) -> KeyRing:
    return _ring(settings.encryption_keys.get_secret_value())


def generate_key() -> str:
    return write_key(os.urandom(32))


# At the doors


def ensure_real(payload: Any, paths: tuple[Path, ...]) -> None:
    """Refuse a payload that was copied from where it is shown."""

    def check(value: Any, place: Place) -> Any:
        if value == REDACTED:
            field = ".".join(map(str, place))
            raise InvalidPayload(
                f"the payload's {field} is the word {REDACTED}, which stands for a secret where "
                "payloads are shown; give the real value"
            )
        return value

    changed_at(payload, paths, check)


def seal_request(
    request: Request, payload: Any, paths: tuple[Path, ...], *, settings: Settings
) -> Request:
    """The same request with its secrets encrypted, if there are keys."""
    ensure_real(payload, paths)
    keys, options = key_ring(settings), request.options
    if not keys:
        return request
    owner = Owner(options.tenant_id, request.definition)
    is_repeatable = options.dedupe_by is not None or options.idempotency_key is not None
    sealed = keys.seal(payload, paths, owner, is_repeatable=is_repeatable)
    return replace(request, payload=encode_payload(sealed, settings.max_payload_bytes).decode())


def seal_bulk(
    bulk: Bulk, payloads: Sequence[Any], paths: tuple[Path, ...], *, settings: Settings
) -> Bulk:
    """The same for many."""
    for payload in payloads:
        ensure_real(payload, paths)
    keys = key_ring(settings)
    if not keys:
        return bulk
    owner = Owner(bulk.options.tenant_id, bulk.definition)
    sealed = (keys.seal(payload, paths, owner) for payload in payloads)
    encoded = [encode_payload(payload, settings.max_payload_bytes) for payload in sealed]
    return replace(bulk, payloads=encoded)


def seal_payload(
    payload: Any,
    paths: tuple[Path, ...],
    owner: Owner,
    *,
    settings: Settings,
    is_repeatable: bool = False,
) -> Any:
    """The payload of a new job with its secrets encrypted, if there are keys."""
    ensure_real(payload, paths)
    return key_ring(settings).seal(payload, paths, owner, is_repeatable=is_repeatable)


async def seal_edit(
    database: Database,
    payload: Any,
    job_id: JobId,
    *,
    tenant_id: TenantId,
    connection: object = None,
) -> Any:
    """The payload a person edited, with what is new in it encrypted as the job's own is."""
    keys = key_ring(database.settings)
    if not keys:
        return payload
    rows = await database.arun(store.paths_of_job(tenant_id, job_id), connection)
    if not rows:
        return payload
    definition, paths = rows[0]
    return keys.seal(payload, store.read_paths(paths), Owner(tenant_id, definition))


async def seal_schedules(
    run: Run, schedules: Sequence[dict[str, Any]], *, settings: Settings
) -> list[dict[str, Any]]:
    """Schedules, as the facts of their columns, with the secrets of their payloads encrypted."""
    rows = await run(store.paths_of_definitions({facts["definition"] for facts in schedules}))
    paths = {key: store.read_paths(text) for key, text in rows}
    keys = key_ring(settings)
    sealed = []
    for facts in schedules:
        payload, found = facts["payload"], paths.get(facts["definition"], ())
        ensure_real(payload, found)
        owner = Owner(facts["tenant_id"], facts["definition"])
        sealed.append({**facts, "payload": seal_template(keys, payload, found, owner=owner)})
    return sealed


def seal_template(keys: KeyRing, payload: Any, paths: tuple[Path, ...], *, owner: Owner) -> Any:
    """The same way every time, since what code declares is compared with what is stored. What is
    still to be rendered stays as it is."""
    return keys.seal(payload, paths, owner, is_repeatable=True, leave=has_template)


async def seal_changes(
    run: Run, changes: Mapping[str, Any], known: Owner, *, name: str, settings: Settings
) -> Mapping[str, Any]:
    """Changes of a schedule with their secrets encrypted; with another definition the payload it
    has is encrypted anew."""
    keys = key_ring(settings)
    owner = Owner(known.tenant_id, changes.get("definition", known.definition))
    if not keys or ("payload" not in changes and owner == known):
        return changes
    rows = await run(store.paths_of_definitions([owner.definition]))
    paths = store.read_paths(rows[0][1]) if rows else ()
    if "payload" in changes:
        payload = dict(changes["payload"])
    else:
        ((_, stored),) = await run(store.real_payload(known.tenant_id, name))
        payload = keys.open(orjson.loads(stored), known).payload
    if owner != known:
        ensure_real(payload, paths)
    return {**changes, "payload": seal_template(keys, payload, paths, owner=owner)}


# Encrypted values


def _changed_sealed(value: Any, change: Callable[[Any, Place], Any], place: Place = ()) -> Any:
    if is_sealed(value):
        return change(value, place)
    if len(place) > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: _changed_sealed(part, change, (*place, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_changed_sealed(part, change, (*place, index)) for index, part in enumerate(value)]
    return value


def _bound(owner: Owner, place: Place) -> bytes:
    return json.dumps([*owner, *place]).encode()


def _nonce() -> bytes:
    return os.urandom(_NONCE_BYTES)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _cipher(key: Key) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415 - optional
            AESSIV,
        )
    except ImportError:
        raise SettingsError(
            "encryption_keys needs the package cryptography; run "
            "`pip install 'mainspring[encryption]'`"
        ) from None
    return AESSIV(key.material)
