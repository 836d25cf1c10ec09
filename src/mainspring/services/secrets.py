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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from mainspring.db.plans import Plan, Statement
from mainspring.db.sessions import Session
from mainspring.domain.errors import InvalidPayload, SettingsError
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.secrets.keys import Key, read_keys, write_key
from mainspring.domain.secrets.paths import (
    ENCRYPTED,
    ENCRYPTION_MARK,
    REDACTED,
    Path,
    Place,
    changed_at,
    is_encrypted,
    texts_in,
)
from mainspring.domain.templates import has_template
from mainspring.domain.types import JobId, TenantId
from mainspring.settings import Settings
from mainspring.store import secrets as store
from mainspring.store.rows.secrets import read_paths

_NONCE_BYTES = 16
_DEEPEST = 400


class Owner(NamedTuple):
    """Whose payload it is; an encrypted value is worth nothing anywhere else."""

    tenant_id: TenantId
    definition: str


@dataclass(frozen=True, slots=True)
class Decrypted:
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

    def encrypt(
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

        def encrypt(value: Any, place: Place) -> Any:
            if is_encrypted(value) or value == REDACTED or leave(value):
                return value
            return self._encrypt(value, owner, place, nonce=None if is_repeatable else _nonce())

        return changed_at(payload, paths, encrypt) if self else payload

    def decrypt(self, payload: Any, owner: Owner) -> Decrypted:
        """Raises UnreadableSecret for a value that no key of the ring decrypts."""
        found: list[Any] = []

        def decrypt(stored: Any, place: Place) -> Any:
            found.append(self._decrypt(stored, owner, place))
            return found[-1]

        decrypted = _changed(payload, decrypt)
        return Decrypted(decrypted, set(texts_in(found)), is_changed=bool(found))

    def renew(self, payload: Any, owner: Owner) -> Any:
        """The payload with every value under the first key."""

        def renew(stored: Any, place: Place) -> Any:
            if stored.get("key") == self._first:
                return stored
            nonce = _nonce() if "nonce" in stored else None
            return self._encrypt(self._decrypt(stored, owner, place), owner, place, nonce=nonce)

        return _changed(payload, renew)

    def _encrypt(
        self, value: Any, owner: Owner, place: Place, *, nonce: bytes | None
    ) -> dict[str, str]:
        if self._first is None:
            raise SettingsError("no encryption keys are configured")
        bound = [_bound(owner, place)] if nonce is None else [_bound(owner, place), nonce]
        data = self._ciphers[self._first].encrypt(orjson.dumps(value), bound)
        extra = {} if nonce is None else {"nonce": _text(nonce)}
        return {ENCRYPTION_MARK: ENCRYPTED, "key": self._first, **extra, "value": _text(data)}

    def _decrypt(self, stored: Any, owner: Owner, place: Place) -> Any:
        field = ".".join(map(str, ("payload", *place)))
        cipher = self._ciphers.get(stored.get("key"))
        if cipher is None:
            raise UnreadableSecret(field, str(stored.get("key")))
        try:
            nonce = [_bytes(stored["nonce"])] if "nonce" in stored else []
            data = cipher.decrypt(_bytes(stored["value"]), [_bound(owner, place), *nonce])
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


# Payloads of new and edited jobs


def ensure_real(payload: Any, paths: tuple[Path, ...]) -> None:
    """Refuse a payload that was copied from where it is shown."""

    def check(value: Any, place: Place) -> Any:
        if value == REDACTED:
            field = ".".join(map(str, place))
            raise InvalidPayload(
                f"the payload's {field} is {REDACTED}, the placeholder for a secret where "
                "payloads are shown; pass the real value"
            )
        return value

    changed_at(payload, paths, check)


def encrypt_payload(
    payload: Any,
    paths: tuple[Path, ...],
    owner: Owner,
    *,
    settings: Settings,
    is_repeatable: bool = False,
) -> Any:
    """A copy with the values at the paths encrypted; without keys the payload itself."""
    return key_ring(settings).encrypt(payload, paths, owner, is_repeatable=is_repeatable)


def encrypt_edit(
    payload: Any,
    job_id: JobId,
    *,
    tenant_id: TenantId,
    settings: Settings,
    connection: object = None,
) -> Plan[Any]:
    """The payload a person edited, with what is new in it encrypted as the job's own is."""
    keys = key_ring(settings)
    if not keys:
        return payload
    rows = yield Statement(store.paths_of_job(tenant_id, job_id), connection)
    if not rows:
        return payload
    definition, paths = rows[0]
    return keys.encrypt(payload, read_paths(paths), Owner(tenant_id, definition))


# Payloads of schedules


async def encrypt_schedules(
    session: Session, schedules: Sequence[dict[str, Any]], *, settings: Settings
) -> list[dict[str, Any]]:
    """Schedules, as the facts of their columns, with the secrets of their payloads encrypted."""
    definitions = {facts["definition"] for facts in schedules}
    paths = await store.paths_of_definitions(session, definitions)
    keys = key_ring(settings)
    encrypted = []
    for facts in schedules:
        payload, found = facts["payload"], paths.get(facts["definition"], ())
        ensure_real(payload, found)
        owner = Owner(facts["tenant_id"], facts["definition"])
        encrypted.append({**facts, "payload": encrypt_template(keys, payload, found, owner=owner)})
    return encrypted


def encrypt_template(keys: KeyRing, payload: Any, paths: tuple[Path, ...], *, owner: Owner) -> Any:
    """The same way every time, since what code declares is compared with what is stored. What is
    still to be rendered stays as it is."""
    return keys.encrypt(payload, paths, owner, is_repeatable=True, leave=has_template)


async def encrypt_changes(
    session: Session, changes: Mapping[str, Any], known: Owner, *, name: str, settings: Settings
) -> Mapping[str, Any]:
    """Changes of a schedule with their secrets encrypted; with another definition the payload it
    has is encrypted anew."""
    keys = key_ring(settings)
    owner = Owner(known.tenant_id, changes.get("definition", known.definition))
    if not keys or ("payload" not in changes and owner == known):
        return changes
    known_paths = await store.paths_of_definitions(session, [owner.definition])
    paths = known_paths.get(owner.definition, ())
    if "payload" in changes:
        payload = dict(changes["payload"])
    else:
        stored = await store.real_payload(session, known.tenant_id, name)
        payload = keys.decrypt(stored, known).payload
    if owner != known:
        ensure_real(payload, paths)
    return {**changes, "payload": encrypt_template(keys, payload, paths, owner=owner)}


# Encrypted values


def _changed(value: Any, change: Callable[[Any, Place], Any], place: Place = ()) -> Any:
    if is_encrypted(value):
        return change(value, place)
    if len(place) > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: _changed(part, change, (*place, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_changed(part, change, (*place, index)) for index, part in enumerate(value)]
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
