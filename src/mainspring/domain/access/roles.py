"""Who may do what: a caller has a role in one tenant, and a token may narrow it further.

operator  all tenants, and what belongs to none: definitions, limits, queues, tenants, workers
admin     everything of one tenant
member    enqueues, and sees and steers what it has enqueued itself; approves where it is asked to
viewer    sees what is in one tenant
worker    claims the jobs of one tenant, of several or of all, and reports what came of them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import TenantId


class Role(StrEnum):
    """What a caller may do: an operator acts on all tenants, an admin on one, a member on its own
    jobs; a viewer reads, and a worker claims jobs and reports them."""

    OPERATOR = "operator"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"
    WORKER = "worker"


READ: Final = "read"
WRITE: Final = "write"
VERBS: Final = (READ, WRITE)
EVERY_TENANT: Final = "*"
MOST_TENANTS: Final = 100

_EVERYONE = frozenset(Role)
_PEOPLE = frozenset((Role.OPERATOR, Role.ADMIN, Role.MEMBER, Role.VIEWER))
# A member sees what it has enqueued itself, and figures do not say who did.
_WATCHERS = frozenset((Role.OPERATOR, Role.ADMIN, Role.VIEWER))
_DOERS = frozenset((Role.OPERATOR, Role.ADMIN, Role.MEMBER))
_ADMINS = frozenset((Role.OPERATOR, Role.ADMIN))
_OPERATORS = frozenset((Role.OPERATOR,))

# Who may read, and who may write.
_RIGHTS: Final[Mapping[str, tuple[frozenset[Role], frozenset[Role]]]] = {
    "approvals": (_PEOPLE, _DOERS),
    "audit": (_ADMINS, frozenset()),
    "definitions": (_EVERYONE, _OPERATORS),
    "doctor": (_OPERATORS, _OPERATORS),
    # Errors do not say whose jobs failed, so who sees only its own jobs sees none.
    "errors": (_WATCHERS, frozenset()),
    "events": (_PEOPLE, _DOERS),
    "figures": (_WATCHERS, frozenset()),
    "flows": (_PEOPLE, _DOERS),
    "jobs": (_PEOPLE, _DOERS),
    "limits": (_PEOPLE, _OPERATORS),
    "people": (_ADMINS, _ADMINS),
    "processes": (_ADMINS, frozenset()),
    "queues": (_PEOPLE, _OPERATORS),
    "retention": (_ADMINS, _ADMINS),
    "schedules": (_PEOPLE, _ADMINS),
    "status": (_OPERATORS, frozenset()),
    "tenants": (_PEOPLE, _OPERATORS),
    "tokens": (_ADMINS, _ADMINS),
    "triggers": (_PEOPLE, _ADMINS),
    "work": (frozenset(), frozenset((Role.OPERATOR, Role.WORKER))),
    "workers": (_ADMINS, _OPERATORS),
}
NOUNS: Final = tuple(_RIGHTS)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what it may do. No tenant is all of them, or for a worker its `tenants`.

    `actor` is what it is called, `identity` its kind and id, `voter` as whom it votes. `person_id`
    is whose it is, `token_id` which token or session it showed. What it makes ends by `ends_by`, in
    `ends_in`.
    """

    actor: str
    role: Role
    tenant_id: TenantId | None
    scopes: tuple[str, ...] | None = None
    kind: str = "token"
    token_id: int = 0
    identity: str = ""
    voter: str = ""
    person_id: int | None = None
    person: str | None = None
    ends_by: datetime | None = None
    ends_in: timedelta | None = None
    tenants: tuple[str, ...] | None = None

    @property
    def rights(self) -> tuple[object, ...]:
        """What it may see and do; where this has changed, whatever was begun with it has to end."""
        return self.actor, self.role, self.tenant_id, self.tenants, self.scopes

    @property
    def served(self) -> tuple[str, ...] | None:
        """The tenants whose jobs it may claim; None is all of them."""
        return self.tenants if self.tenant_id is None else (self.tenant_id,)

    @property
    def is_session(self) -> bool:
        return self.kind == "session"


def may(role: Role, noun: str, verb: str) -> bool:
    """Whether a role may do it at all; a member only with what is its own."""
    return role in _RIGHTS[noun][VERBS.index(verb)]


def ensure_allowed(caller: Caller, noun: str, verb: str) -> None:
    """Raise Forbidden, with who may, unless the caller may."""
    if not may(caller.role, noun, verb):
        doers = sorted(role for role in Role if may(role, noun, verb))
        hint = f"; it requires the role {' or '.join(doers)}" if doers else ""
        deed = "act as a worker" if noun == "work" else f"{verb} {noun}"
        raise Forbidden(f"the role {caller.role} may not {deed}{hint}")
    if not allows(caller.scopes, noun, verb):
        raise Forbidden(f"the token lacks the scope {noun}:{verb}")


def ensure_role(role: object) -> Role:
    """A role by its name."""
    try:
        return Role(str(role))
    except ValueError:
        hint = did_you_mean(str(role), Role)
        raise InvalidOption(
            "role", f"must be one of {', '.join(Role)}, not {role!r}{hint}"
        ) from None


def ensure_tenants_of(role: Role, tenants: Sequence[str]) -> tuple[str, ...] | None:
    """The tenants that a worker serves, by name; None for all of them, which is `*`."""
    if role is not Role.WORKER:
        raise InvalidOption("tenants", f"is for the role worker; the role {role} has one tenant")
    if isinstance(tenants, str) or not 1 <= len(tenants) <= MOST_TENANTS:
        raise InvalidOption("tenants", f"must be a list of 1 to {MOST_TENANTS} tenants, or of *")
    named = tuple(dict.fromkeys(tenants))
    if EVERY_TENANT in named and len(named) > 1:
        raise InvalidOption("tenants", "must be * alone, which is all tenants, or name tenants")
    return None if named == (EVERY_TENANT,) else named


def ensure_tenant_of(role: Role, tenant_id: str | None) -> None:
    """An operator belongs to no tenant, everyone else to one."""
    if role is Role.OPERATOR and tenant_id is not None:
        raise InvalidOption("tenant", "cannot be set for an operator, who sees all tenants")
    if role is not Role.OPERATOR and tenant_id is None:
        raise InvalidOption("tenant", f"is required for the role {role}")


def ensure_scopes(scopes: Sequence[str] | None) -> tuple[str, ...] | None:
    """What a token may do of what its role may; None is all of it."""
    if scopes is None:
        return None
    if isinstance(scopes, str) or not scopes:
        raise InvalidOption("scopes", "must be a list of scopes such as jobs:read, or omitted")
    for scope in scopes:
        _ensure_scope(scope)
    return tuple(sorted(set(scopes)))


def _ensure_scope(scope: object) -> None:
    noun, colon, verb = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    if noun not in (*NOUNS, "*") or not colon or verb not in VERBS:
        known = [f"{noun}:{verb}" for noun in ("*", *NOUNS) for verb in VERBS]
        hint = did_you_mean(str(scope), known)
        raise InvalidOption(
            "scope",
            f"must be a noun or *, a colon, and read or write, such as jobs:read, not {scope!r}"
            f"{hint}",
        )


def allows(scopes: Sequence[str] | None, noun: str, verb: str) -> bool:
    """Whether a token with these scopes may do it. Who may change something may see it."""
    if scopes is None:
        return True
    verbs = VERBS if verb == READ else (WRITE,)
    return any(f"{wide}:{strong}" in scopes for wide in (noun, "*") for strong in verbs)
