"""Keys that payloads are encrypted with: `msk_` and 32 random bytes as URL-safe base64."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field

PREFIX = "msk_"
_BYTES = 32
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Key:
    """`id` says which key it is and nothing about it; `material` is what the cipher takes, and
    `fingerprints` what values are made comparable with."""

    id: str
    material: bytes = field(repr=False)
    fingerprints: bytes = field(repr=False)


def read_keys(text: str) -> tuple[Key, ...]:
    """The keys of a list separated by commas; raises ValueError without showing any of it."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    keys = tuple(_read(part, number) for number, part in enumerate(parts, start=1))
    if len({key.id for key in keys}) < len(keys):
        raise ValueError("the same key is given twice")
    return keys


def write_key(data: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def _read(text: str, number: int) -> Key:
    try:
        data = base64.b64decode(text.removeprefix(PREFIX) + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not text.startswith(PREFIX) or len(data) != _BYTES:
        raise ValueError(
            f"key number {number} is invalid; generate one with `mainspring admin secrets "
            "generate-key`"
        )
    # What is shown, what encrypts and what compares are made from the key in ways that tell nothing
    # of each other.
    key_id = hmac.digest(data, b"mainspring key id", hashlib.sha256).hex()[:_ID_DIGITS]
    material = hmac.digest(data, b"mainspring payload values", hashlib.sha512)
    fingerprints = hmac.digest(data, b"mainspring payload fingerprints", hashlib.sha256)
    return Key(key_id, material, fingerprints)
