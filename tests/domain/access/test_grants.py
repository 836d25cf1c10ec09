"""What a caller hands on is at most its own, for every role and every set of scopes."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import product

import pytest

from mainspring.domain.access.grants import (
    covers,
    ensure_may_create_token,
    ensure_may_let_in,
    ensure_may_log_in_as,
)
from mainspring.domain.access.roles import NOUNS, VERBS, Caller, Role, allows, may
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.types import TenantId

HOUR = timedelta(hours=1)
SCOPE_SETS: list[tuple[str, ...] | None] = [
    None,
    ("*:write",),
    ("*:read",),
    ("tokens:write",),
    ("people:write", "tokens:write"),
    ("*:read", "people:write"),
    ("jobs:read",),
    ("jobs:write",),
    ("jobs:write", "work:write"),
]


def caller(
    role: Role, scopes: tuple[str, ...] | None = None, ends_in: timedelta | None = None
) -> Caller:
    tenant = None if role is Role.OPERATOR else TenantId("default")
    return Caller("someone", role, tenant, scopes, ends_in=ends_in)


def rights(role: Role, scopes: tuple[str, ...] | None) -> set[tuple[str, str]]:
    """All that someone may do."""
    return {
        (noun, verb)
        for noun, verb in product(NOUNS, VERBS)
        if may(role, noun, verb) and allows(scopes, noun, verb)
    }


def is_allowed(check: Callable[[], None]) -> bool:
    try:
        check()
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("own", "role", "allowed"),
    [
        (own, role, own is Role.OPERATOR or (own is Role.ADMIN and role is not Role.OPERATOR))
        for own, role in product((Role.OPERATOR, Role.ADMIN), Role)
    ]
    + [
        (own, role, (own, role) in {(own, own), (Role.MEMBER, Role.VIEWER)})
        for own, role in product((Role.MEMBER, Role.VIEWER, Role.WORKER), Role)
    ],
)
def test_a_role_gives_what_is_no_more_than_itself(own: Role, role: Role, allowed: bool):
    someone = caller(own)

    checks = (
        lambda: ensure_may_create_token(someone, role, scopes=None, life=None),
        lambda: ensure_may_let_in(someone, role),
        lambda: ensure_may_log_in_as(someone, role),
    )

    assert [is_allowed(check) for check in checks] == [allowed] * 3


@pytest.mark.parametrize("own", SCOPE_SETS)
def test_scopes_that_cover_others_allow_all_that_they_do(own):
    everywhere = list(product(("*", *NOUNS), VERBS))
    for asked in SCOPE_SETS:
        more = {each for each in everywhere if allows(asked, *each) and not allows(own, *each)}
        # None is also what no scope names: login links, and what there will be one day.
        is_whole = own is not None and asked is None
        assert covers(own, asked) is not (bool(more) or is_whole), asked


@pytest.mark.parametrize(("own", "role"), list(product((Role.OPERATOR, Role.ADMIN), Role)))
def test_no_new_token_may_more_in_a_tenant_than_who_makes_it(own, role):
    for scopes, new in product(SCOPE_SETS, SCOPE_SETS):
        made = is_allowed(
            partial(ensure_may_create_token, caller(own, scopes), role, scopes=new, life=None)
        )
        # An admin makes workers, who may claim, which an admin may not.
        gained = {noun for noun, _ in rights(role, new) - rights(own, scopes)} - {"work"}
        assert not (made and gained), (scopes, new)


@pytest.mark.parametrize(("own", "role"), list(product((Role.OPERATOR, Role.ADMIN), Role)))
def test_nobody_is_let_in_who_may_more_than_who_lets_them_in(own, role):
    for scopes in SCOPE_SETS:
        let_in = is_allowed(partial(ensure_may_let_in, caller(own, scopes), role))
        linked = is_allowed(partial(ensure_may_log_in_as, caller(own, scopes), role))

        gained = {noun for noun, _ in rights(role, None) - rights(own, scopes)} - {"work"}
        assert not (let_in and gained), scopes
        assert not (linked and scopes is not None), scopes


@pytest.mark.parametrize(
    ("left", "life", "allowed"),
    [
        (None, None, True),
        (None, HOUR, True),
        (HOUR, None, False),
        (HOUR, HOUR, True),
        (HOUR, HOUR + timedelta(microseconds=1), False),
    ],
)
def test_what_is_made_ends_no_later(left, life, allowed):
    someone = caller(Role.ADMIN, ends_in=left)

    check = is_allowed(
        lambda: ensure_may_create_token(someone, Role.VIEWER, scopes=None, life=life)
    )

    assert check is allowed


def test_refusals_say_what_to_pass():
    scoped = caller(Role.ADMIN, ("jobs:read", "tokens:write"))
    brief = caller(Role.ADMIN, ends_in=HOUR)

    with pytest.raises(Forbidden, match="pass scopes that this token has: jobs:read, tokens:write"):
        ensure_may_create_token(scoped, Role.VIEWER, scopes=None, life=None)
    with pytest.raises(Forbidden, match="cannot create one with jobs:write; pass"):
        ensure_may_create_token(scoped, Role.VIEWER, scopes=("jobs:write",), life=None)
    with pytest.raises(Forbidden, match="expires_in of at most 3600 seconds"):
        ensure_may_create_token(brief, Role.VIEWER, scopes=None, life=None)
    with pytest.raises(Forbidden, match=r"the role viewer, which may do more \(approvals:read"):
        ensure_may_let_in(scoped, Role.VIEWER)
