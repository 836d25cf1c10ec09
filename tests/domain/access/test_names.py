"""Names of people and tokens: what is reserved, and who is meant by one."""

from datetime import UTC, datetime

import pytest

from mainspring.domain.access.names import the_one
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person, ensure_name
from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.access import AmbiguousName
from mainspring.domain.types import TenantId


def person(number: int, tenant: str | None) -> Person:
    role = Role.OPERATOR if tenant is None else Role.ADMIN
    tenant_id = None if tenant is None else TenantId(tenant)
    now = datetime.now(UTC)
    return Person(number, "ann", role, tenant_id, False, now, "root", None)


def test_the_only_one_of_a_name_is_meant():
    only = person(1, "acme")

    assert the_one([only]) is only
    assert the_one([]) is None


def test_an_operator_comes_before_anyone_whom_a_tenant_calls_so():
    operator = person(2, None)

    assert the_one([person(1, "acme"), operator, person(3, "bell")]) is operator


def test_of_several_tenants_one_has_to_be_named():
    with pytest.raises(AmbiguousName, match="in the tenants acme, bell and core; say which"):
        the_one([person(1, "acme"), person(3, "core"), person(2, "bell")])


def test_a_reserved_name_is_refused_with_all_that_are():
    with pytest.raises(InvalidOption, match=r"'root', .*; choose another than admin, .*, worker"):
        ensure_name("root")


@pytest.mark.parametrize("role", list(Role))
def test_a_role_is_no_name(role: Role):
    for name in (role.value, role.value.upper(), f"{role.value} ", f"{role.value[:3]}.{role[3:]}"):
        with pytest.raises(InvalidOption, match="reserved"):
            ensure_name(name)
    ensure_name(f"{role.value}-1")
