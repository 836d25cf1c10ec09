"""Access: what is found of poolers, logins, row-level security, functions and tokens."""

import pytest

from mainspring.domain.checks import access
from mainspring.domain.checks.access import (
    Backends,
    Link,
    RequestRole,
    TableSecurity,
    Tampering,
    TokenAge,
)


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize(
    ("served", "announced", "use_pooler", "expected"),
    [
        ({1}, 1, False, []),
        ({1}, 1, True, ["note"]),
        ({1}, 9, False, ["note"]),
        ({1}, 9, True, []),
        ({1, 2}, 9, False, ["critical"]),
        ({1, 2}, 9, True, []),
    ],
)
def test_a_pooler_must_be_known(served, announced, use_pooler, expected):
    found = access.pooler(Backends(served, announced), use_pooler=use_pooler)

    assert severities(found) == expected


@pytest.mark.parametrize(
    ("is_encrypted", "is_local", "expected"),
    [(False, False, ["warning"]), (True, False, []), (False, True, [])],
)
def test_a_connection_from_elsewhere_must_be_encrypted(is_encrypted, is_local, expected):
    assert severities(access.encryption(Link(is_encrypted, is_local, "10.0.0.7"))) == expected


@pytest.mark.parametrize(
    ("role", "table", "count"),
    [
        (RequestRole("app", False, False), TableSecurity("jobs", "me", True), 0),
        (RequestRole("app", True, False), TableSecurity("jobs", "me", True), 1),
        (RequestRole("app", False, True), TableSecurity("jobs", "me", True), 1),
        (RequestRole("app", False, False), TableSecurity("jobs", "me", False), 1),
        (RequestRole("app", False, False), TableSecurity("buckets", "me", False), 0),
        (RequestRole("app", False, False), TableSecurity("jobs", "you", True), 1),
    ],
)
def test_row_level_security_must_hold(role, table, count):
    found = access.row_security([role], [table], protected={"jobs"}, owner="me")

    assert severities(found) == ["critical"] * count


def test_a_schema_that_does_not_fit_is_the_only_finding():
    tampering = Tampering(["claim"], ["audit on jobs"])

    assert len(access.schema_state("the schema is old", tampering)) == 1
    assert len(access.schema_state(None, tampering)) == 2
    assert access.schema_state(None, Tampering([], [])) == []


def test_functions_are_compared_by_all_their_texts():
    shipped = {"a": ["1"], "b": ["1", "2"], "c": ["1"]}
    present = {"a": ["1", "older"], "b": ["1"], "mine": ["9"]}

    assert access.changed_functions(shipped, present) == ["b", "c"]


@pytest.mark.parametrize(
    ("role", "left", "unused", "expected"),
    [
        ("admin", 14, 0, ["warning"]),
        ("admin", 14.1, 0, []),
        ("admin", None, 90, []),
        ("admin", None, 90.1, ["note"]),
        ("operator", None, 0, ["note"]),
        ("operator", 30, 0, []),
    ],
)
def test_tokens_that_end_or_that_nobody_uses(role, left, unused, expected):
    assert severities(access.tokens([TokenAge("ci", role, None, left, unused)])) == expected
