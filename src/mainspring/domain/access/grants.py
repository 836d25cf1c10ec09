"""What a caller may hand on: at most its own role, scopes and expiry.

A person logs in without scopes, so whoever makes one, or lets one in, hands on all that the role of
that person may do.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from mainspring.domain.access.roles import NOUNS, VERBS, Caller, Role, allows, may
from mainspring.domain.errors.access import Forbidden

# The roles that are no more than each.
_WITHIN: Final[Mapping[Role, frozenset[Role]]] = MappingProxyType(
    {
        Role.OPERATOR: frozenset(Role),
        Role.ADMIN: frozenset(Role) - {Role.OPERATOR},
        Role.MEMBER: frozenset((Role.MEMBER, Role.VIEWER)),
        Role.VIEWER: frozenset((Role.VIEWER,)),
        Role.WORKER: frozenset((Role.WORKER,)),
    }
)


def ensure_may_create_token(
    caller: Caller, role: Role, *, scopes: Sequence[str] | None, life: timedelta | None
) -> None:
    """Raise Forbidden unless the token may no more than the caller, and for no longer."""
    _ensure_role(caller, role)
    if not covers(caller.scopes, scopes):
        own = ", ".join(caller.scopes or ())
        asked = "all scopes" if scopes is None else ", ".join(_missing(caller.scopes, scopes))
        raise Forbidden(
            f"a token with scopes cannot create one with {asked}; pass scopes that this token "
            f"has: {own}"
        )
    if caller.ends_in is not None and (life is None or life > caller.ends_in):
        left = max(0, int(caller.ends_in.total_seconds()))
        raise Forbidden(
            f"what this caller creates must expire before it does; pass expires_in of at most "
            f"{left} seconds"
        )


def ensure_may_serve(caller: Caller) -> None:
    """Raise Forbidden unless the caller may make a token for a worker of several tenants."""
    if caller.role is not Role.OPERATOR:
        raise Forbidden("only an operator can create a worker's token for several tenants")


def ensure_may_let_in(caller: Caller, role: Role) -> None:
    """Raise Forbidden unless a person of the role may no more than the caller."""
    _ensure_role(caller, role)
    missing = [
        scope
        for scope in _scopes_of(role)
        if caller.scopes is not None and not allows(caller.scopes, *scope.split(":"))
    ]
    if missing:
        raise Forbidden(
            f"a token with scopes cannot give a person the role {role}, which may do more "
            f"({', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}); use a token "
            "without scopes"
        )


def ensure_may_log_in_as(caller: Caller, role: Role) -> None:
    """Raise Forbidden unless the caller may make a login link for a person of the role."""
    _ensure_role(caller, role)
    if caller.scopes is not None:
        raise Forbidden(
            "a token with scopes cannot create login links; use a token without scopes, or log in"
        )


def covers(own: Sequence[str] | None, asked: Sequence[str] | None) -> bool:
    """Whether scopes allow all that others do; None allows everything."""
    if own is None or asked is None:
        return own is None
    return not _missing(own, asked)


def _missing(own: Sequence[str] | None, asked: Sequence[str]) -> list[str]:
    return [scope for scope in asked if not allows(own, *scope.split(":"))]


def _scopes_of(role: Role) -> Iterator[str]:
    return (f"{noun}:{verb}" for noun in NOUNS for verb in VERBS if may(role, noun, verb))


def _ensure_role(caller: Caller, role: Role) -> None:
    if role in _WITHIN[caller.role]:
        return
    if role is Role.OPERATOR:
        raise Forbidden("only an operator can create another operator")
    raise Forbidden(f"the role {caller.role} cannot give anyone the role {role}")
