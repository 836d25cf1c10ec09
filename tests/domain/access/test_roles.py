"""Roles and scopes: what there is, what is refused, and what a scope lets through."""

import pytest

from mainspring.domain.access.roles import (
    Role,
    allows,
    ensure_role,
    ensure_scopes,
    ensure_tenant_of,
)
from mainspring.domain.errors import InvalidOption


@pytest.mark.parametrize("role", list(Role))
def test_a_role_is_known_by_its_name(role):
    assert ensure_role(role.value) is role


def test_a_role_that_is_misspelt_is_refused_with_the_right_one():
    with pytest.raises(InvalidOption, match="did you mean viewer"):
        ensure_role("veiwer")


def test_an_operator_belongs_to_no_tenant_and_everyone_else_to_one():
    ensure_tenant_of(Role.OPERATOR, None)
    ensure_tenant_of(Role.ADMIN, "acme")
    with pytest.raises(InvalidOption, match="cannot be set for an operator"):
        ensure_tenant_of(Role.OPERATOR, "acme")
    with pytest.raises(InvalidOption, match="is required for the role worker"):
        ensure_tenant_of(Role.WORKER, None)


@pytest.mark.parametrize("scope", ["jobs", "jobs:", ":read", "job:read", "jobs:raed", "", 3])
def test_a_scope_that_is_none_is_refused(scope):
    with pytest.raises(InvalidOption, match="must be a noun or"):
        ensure_scopes([scope])


def test_scopes_are_kept_once_and_in_order():
    assert ensure_scopes(["jobs:write", "audit:read", "jobs:write"]) == ("audit:read", "jobs:write")
    assert ensure_scopes(None) is None
    with pytest.raises(InvalidOption):
        ensure_scopes([])


@pytest.mark.parametrize(
    ("scopes", "noun", "verb", "allowed"),
    [
        (None, "jobs", "write", True),
        (["jobs:read"], "jobs", "read", True),
        (["jobs:read"], "jobs", "write", False),
        (["jobs:write"], "jobs", "read", True),
        (["*:read"], "audit", "read", True),
        (["*:read"], "audit", "write", False),
        (["*:write"], "audit", "read", True),
        (["jobs:write"], "schedules", "read", False),
    ],
)
def test_a_scope_lets_through_what_it_names(scopes, noun, verb, allowed):
    assert allows(scopes, noun, verb) is allowed
