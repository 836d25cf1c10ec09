"""Secrets of payloads on their way to the database: checked, and encrypted if there are keys.

    value ─▶ AES-SIV under the first key and a random nonce, bound to tenant, definition and place
          ─▶ {"$mainspring": "encrypted", "key": "1f0c9a2e", "nonce": "...", "value": "..."}

Equal secrets are stored differently. Where equal payloads must be recognised (dedupe by content,
idempotency keys, windows of triggers) each value is sent with a `fingerprint`, a keyed hash, beside
it; the database compares payloads by these, keeps a keyed hash of the whole, and stores none. What
code declares of a schedule is compared with what is stored by decrypting that.

Earlier releases stored some values without a nonce. They are read, and rotation replaces them.
"""

import base64
import hashlib
import hmac
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
        self._fingerprints = {key.id: key.fingerprints for key in keys}
        self._first = keys[0].id if keys else None

    def __bool__(self) -> bool:
        return self._first is not None

    def encrypt(
        self,
        payload: Any,
        paths: tuple[Path, ...],
        owner: Owner,
        *,
        is_compared: bool = False,
        leave: Callable[[Any], bool] = lambda _: False,
        known: Sequence[Any] = (),
    ) -> Any:
        """The payload with the values at the paths encrypted, each with its fingerprint if it is to
        be compared. What reads [redacted] stays, for whoever knows what it stands for; and a value
        that one of the known payloads has in the same place is taken over from there as it is.
        """
        stored = [_encrypted_values(each) for each in known]

        def encrypt(value: Any, place: Place) -> Any:
            if is_encrypted(value) or value == REDACTED or leave(value):
                return value
            for values in stored:
                if place in values and self._is_of(values[place], value, owner=owner, place=place):
                    return values[place]
            encrypted = self._encrypt(value, owner, place)
            if is_compared:
                encrypted["fingerprint"] = self._fingerprint(value, owner, place)
            return encrypted

        return changed_at(payload, paths, encrypt) if self else payload

    def decrypt(self, payload: Any, owner: Owner) -> Decrypted:
        """Raises UnreadableSecret for a value that no key of the ring decrypts."""
        found: list[Any] = []

        def decrypt(stored: Any, place: Place) -> Any:
            found.append(self._decrypt(stored, owner, place))
            return found[-1]

        decrypted = _changed(payload, decrypt)
        return Decrypted(decrypted, set(texts_in(found)), is_changed=bool(found))

    def readable_secrets(self, payload: Any, owner: Owner) -> Decrypted:
        """The same as `decrypt`, with what no key decrypts left as it is."""
        found: list[Any] = []

        def decrypt(stored: Any, place: Place) -> Any:
            try:
                found.append(self._decrypt(stored, owner, place))
            except UnreadableSecret:
                return stored
            return found[-1]

        decrypted = _changed(payload, decrypt)
        return Decrypted(decrypted, set(texts_in(found)), is_changed=bool(found))

    def renew(self, payload: Any, owner: Owner, *, known: Any = None) -> Any:
        """The payload with every value under the first key and with a nonce; what another payload
        that was renewed has in the same place is taken over from there."""
        values = _encrypted_values(known)

        def renew(stored: Any, place: Place) -> Any:
            if stored.get("key") == self._first and "nonce" in stored:
                return stored
            value = self._decrypt(stored, owner, place)
            if place in values and self._is_of(values[place], value, owner=owner, place=place):
                return values[place]
            return self._encrypt(value, owner, place)

        return _changed(payload, renew)

    def compared(self, payload: Any, owner: Owner, *, key_id: str | None = None) -> Any:
        """What the database compares a payload by: its fingerprints in place of what is encrypted,
        under the key that each value is under, or the first."""

        def fingerprint(stored: Any, place: Place) -> Any:
            value = self._decrypt(stored, owner, place)
            return self._fingerprint(value, owner, place, key_id=key_id or stored["key"])

        return _changed(payload, fingerprint)

    @property
    def first(self) -> str | None:
        """The key that encrypts."""
        return self._first

    def digests(self, data: bytes) -> list[bytes]:
        """By each key, the first one first; the last is that of a process without keys."""
        keyed = [hmac.digest(key, data, "sha256") for key in self._fingerprints.values()]
        return [*keyed, hashlib.sha256(data).digest()]

    def _is_of(self, stored: Any, value: Any, *, owner: Owner, place: Place) -> bool:
        """Whether the value is what is encrypted."""
        try:
            return bool(self._decrypt(stored, owner, place) == value)
        except UnreadableSecret:
            return False

    def _encrypt(self, value: Any, owner: Owner, place: Place) -> dict[str, str]:
        if self._first is None:
            raise SettingsError("no encryption keys are configured")
        nonce = os.urandom(_NONCE_BYTES)
        bound = [_bound(owner, place), nonce]
        data = self._ciphers[self._first].encrypt(orjson.dumps(value), bound)
        mark = {ENCRYPTION_MARK: ENCRYPTED, "key": self._first}
        return {**mark, "nonce": _text(nonce), "value": _text(data)}

    def _fingerprint(
        self, value: Any, owner: Owner, place: Place, *, key_id: str | None = None
    ) -> str:
        """The same for equal values in one place, whatever the order of their names."""
        key = self._fingerprints[str(key_id or self._first)]
        plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return hmac.digest(key, _bound(owner, place) + b"\n" + plain, "sha256").hex()

    def _decrypt(self, stored: Any, owner: Owner, place: Place) -> Any:
        field = ".".join(map(str, ("payload", *place)))
        key_id = stored.get("key")
        if not isinstance(key_id, str):
            raise UnreadableSecret(field, None)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnreadableSecret(field, key_id)
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
    return _ring(settings.encryption_keys.reveal())


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
    is_compared: bool = False,
) -> Any:
    """A copy with the values at the paths encrypted; without keys the payload itself."""
    return key_ring(settings).encrypt(payload, paths, owner, is_compared=is_compared)


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
    """Schedules, as the facts of their columns, with the secrets of their payloads encrypted. Those
    that are stored already are kept as they are stored, so that nothing seems to have changed."""
    definitions = {facts["definition"] for facts in schedules}
    paths = await store.paths_of_definitions(session, definitions)
    keys = key_ring(settings)
    secret = [(facts["tenant_id"], facts["name"]) for facts in schedules if paths and keys]
    known = await store.stored_payloads(session, secret) if secret else {}
    encrypted = []
    for facts in schedules:
        payload, found = facts["payload"], paths.get(facts["definition"], ())
        ensure_real(payload, found)
        owner = Owner(facts["tenant_id"], facts["definition"])
        stored = known.get((facts["tenant_id"], facts["name"]), ())
        payload = keys.encrypt(payload, found, owner, leave=has_template, known=stored)
        encrypted.append({**facts, "payload": payload})
    return encrypted


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
    # What is still to be rendered stays as it is.
    return {**changes, "payload": keys.encrypt(payload, paths, owner, leave=has_template)}


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


def holds_encrypted(payload: Any) -> bool:
    return bool(_encrypted_values(payload))


def _encrypted_values(payload: Any) -> dict[Place, Any]:
    """By their places."""
    found: dict[Place, Any] = {}

    def note(stored: Any, place: Place) -> Any:
        found[place] = stored
        return stored

    _changed(payload, note)
    return found


def _bound(owner: Owner, place: Place) -> bytes:
    return json.dumps([*owner, *place]).encode()


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
