"""Tokens: what a program or a browser shows to be let in, and the people they belong to.

The text of a token is shown once; its digest is stored.
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from mainspring.domain.access.roles import Role
from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import TenantId

LONGEST_LIFE: Final = timedelta(days=3660)
LOGIN_LIFE: Final = timedelta(minutes=15)
SESSION_LIFE: Final = timedelta(days=7)
CONSOLE_LIFE: Final = timedelta(days=1)
# Of the console that `mainspring up` leaves for commands; renewed while it runs.
LOCAL_LIFE: Final = timedelta(minutes=10)
BYTES: Final = 6 + 32
# No colon: "trigger:" and a name says that no person or program did something.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+ -]{0,99}")
# Who else is named in the audit, and what a reader would take for someone with more rights.
RESERVED: Final = frozenset(
    (
        *(role.value for role in Role),
        *(
            "administrator",
            "console",
            "dispatcher",
            "mainspring",
            "name",
            "nobody",
            "owner",
            "person",
        ),
        *(
            "provider",
            "root",
            "scheduler",
            "server",
            "sql",
            "superuser",
            "system",
            "token",
            "trigger",
        ),
    )
)
_TEXT = re.compile(r"msk_[A-Za-z0-9_-]{8}_[A-Za-z0-9_-]{43}")
_PREFIX_LENGTH = len("msk_") + 8


class TokenState(StrEnum):
    """Whether a token lets anyone in."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored. `prefix` is how its text begins; `scopes` is None where it may do
    all that its role may; `person` is who made it, directly or with another token. `tenants` are
    those that a worker serves, if these are several; neither these nor a tenant is all of them."""

    token_id: int
    name: str
    prefix: str
    role: Role
    tenant_id: TenantId | None
    scopes: tuple[str, ...] | None
    person: str | None
    state: TokenState
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    tenants: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who logs in."""

    person_id: int
    name: str
    role: Role
    tenant_id: TenantId | None
    is_disabled: bool
    created_at: datetime
    created_by: str
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class LoginSession:
    """Someone who is logged in. `created_by` made the login link; the person themselves need not
    have."""

    session_id: int
    person_id: int
    person: str
    tenant_id: TenantId | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None


def spell(random: bytes) -> str:
    """The text of a new token."""
    if len(random) != BYTES:
        raise ValueError(f"a token has {BYTES} bytes, not {len(random)}")
    first, rest = random[:6], random[6:]
    return f"msk_{_letters(first)}_{_letters(rest)}"


def _letters(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def is_token(text: str) -> bool:
    """Whether it could be one; nothing else need be looked up."""
    return _TEXT.fullmatch(text) is not None


def prefix(text: str) -> str:
    """What may be shown of a token."""
    return text[:_PREFIX_LENGTH]


def digest(text: str) -> bytes:
    """What is stored of a token. It is as random as a key, so it needs no salt and no delay."""
    return hashlib.sha256(text.encode()).digest()


def ensure_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption(
            "name",
            "must start with a letter, a digit or _ and contain only letters, digits, spaces and "
            f"_ . @ + - (at most 100 characters), not {name!r}",
        )
    if re.sub("[^a-z0-9]", "", name.lower()) in RESERVED:
        raise InvalidOption(
            "name",
            f"must not be {name!r}, which is reserved for roles and for Mainspring itself; choose "
            f"another than {', '.join(sorted(RESERVED))}",
        )


def ensure_life(life: timedelta | None) -> None:
    """None is for ever."""
    if life is not None and not timedelta(0) < life <= LONGEST_LIFE:
        raise InvalidOption("expires", "must be more than zero and at most ten years")
