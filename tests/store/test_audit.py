"""What plain SQL leaves in the audit: one row for each change that a person decides."""

from typing import Any

import psycopg
import pytest

LAST = """
select tenant_id, action, noun, subject, reason, before, after from mainspring.audit
 where audit_id > %s order by audit_id
"""
SECRET = '{"properties": {"pin": {"writeOnly": true}}}'
DIGEST = "decode(repeat('%02d', 32), 'hex')"

SETUP = f"""
insert into mainspring.definitions (key, kind, arg_schema) values ('pay', 'python', '{SECRET}');
insert into mainspring.tokens (name, prefix, digest, role, tenant_id, created_by)
values ('ci', 'msk_a', {DIGEST % 1}, 'member', 'acme', 'root');
insert into mainspring.people (name, role, created_by) values ('ann', 'operator', 'root');
insert into mainspring.limits (name, concurrency) values ('mail', 5);
insert into mainspring.schedules (name, tenant_id, definition, every, payload)
values ('hourly', 'acme', 'pay', '1 hour', '{{"pin": 1, "user": 7}}');
insert into mainspring.triggers (name, tenant_id, event, definition, payload)
values ('paid', 'acme', 'order.paid', 'pay', '{{"pin": 1, "user": 7}}');
"""

Row = tuple[Any, ...]


@pytest.fixture
def audited(tx: psycopg.Connection) -> psycopg.Connection:
    tx.execute(SETUP)
    return tx


def rows_after(connection: psycopg.Connection, statement: str) -> list[Row]:
    """What a statement adds to the audit."""
    newest = "select coalesce(max(audit_id), 0) from mainspring.audit"
    ((before,),) = connection.execute(newest).fetchall()
    connection.execute(statement)
    return connection.execute(LAST, (before,)).fetchall()


CHANGES = [
    # Tokens and people
    (
        "update mainspring.tokens set scopes = '{jobs:read}' where name = 'ci'",
        ("acme", "update", "token", "ci", None, {"scopes": None}, {"scopes": ["jobs:read"]}),
    ),
    (
        "update mainspring.people set role = 'viewer', tenant_id = 'acme' where name = 'ann'",
        (
            *("acme", "update", "person", "ann", None),
            {"role": "operator", "tenant_id": None},
            {"role": "viewer", "tenant_id": "acme"},
        ),
    ),
    (
        "delete from mainspring.people where name = 'ann'",
        (
            *("", "delete", "person", "ann", None),
            {"name": "ann", "role": "operator", "tenant_id": None, "disabled_at": None},
            None,
        ),
    ),
    # Tenants and limits
    (
        "insert into mainspring.tenants (tenant_id, weight) values ('globex', 3)",
        (
            *("globex", "create", "tenant", "globex", None, None),
            {
                "tenant_id": "globex",
                "weight": 3,
                "max_running": None,
                "zone": "UTC",
                "disabled_at": None,
            },
        ),
    ),
    (
        "update mainspring.tenants set max_running = 4 where tenant_id = 'acme'",
        ("acme", "update", "tenant", "acme", None, {"max_running": None}, {"max_running": 4}),
    ),
    (
        (
            "update mainspring.limits set concurrency = null, rate_count = 2,"
            " rate_period = '1 minute' where name = 'mail'"
        ),
        (
            *("", "update", "limit", "mail", None),
            {"concurrency": 5, "rate_count": None, "rate_period": None},
            {"concurrency": None, "rate_count": 2, "rate_period": "00:01:00"},
        ),
    ),
    (
        "delete from mainspring.limits where name = 'mail'",
        (
            *("", "delete", "limit", "mail", None),
            {
                "name": "mail",
                "concurrency": 5,
                "key_concurrency": None,
                "burst": 1,
                "rate_count": None,
                "rate_period": None,
            },
            None,
        ),
    ),
    # Definitions
    (
        "update mainspring.definitions set timeout = '2 hours', queue = 'x' where key = 'pay'",
        (
            *("", "update", "definition", "pay", None),
            {"timeout": "01:00:00", "queue": "default"},
            {"timeout": "02:00:00", "queue": "x"},
        ),
    ),
    (
        "update mainspring.definitions set is_active = false where key = 'pay'",
        (
            *("", "deactivate", "definition", "pay", None),
            {"is_active": True},
            {"is_active": False},
        ),
    ),
    (
        "update mainspring.definitions set retention = '1 day' where key = 'pay'",
        ("", "update", "definition", "pay", None, None, {"retention": "1 day"}),
    ),
    # Schedules and triggers, whose payloads are shown without secrets
    (
        (
            "update mainspring.schedules set enabled = false, disabled_reason = 'too loud'"
            " where name = 'hourly'"
        ),
        (
            *("acme", "disable", "schedule", "hourly", "too loud"),
            {"enabled": True},
            {"enabled": False},
        ),
    ),
    (
        """update mainspring.schedules set payload = '{"pin": 2, "user": 7}'
            where name = 'hourly'""",
        (
            *("acme", "update", "schedule", "hourly", None),
            {"payload": {"pin": "[redacted]", "user": 7}},
            {"payload": {"pin": "[redacted]", "user": 7}},
        ),
    ),
    (
        "update mainspring.schedules set starts_at = '2030-01-01T00:00+02' where name = 'hourly'",
        (
            *("acme", "update", "schedule", "hourly", None, None),
            {"starts_at": "2029-12-31T22:00:00+00:00"},
        ),
    ),
    (
        "update mainspring.triggers set is_enabled = false where name = 'paid'",
        (
            *("acme", "disable", "trigger", "paid", None),
            {"is_enabled": True},
            {"is_enabled": False},
        ),
    ),
    (
        "delete from mainspring.triggers where name = 'paid'",
        (
            *("acme", "delete", "trigger", "paid", None),
            {
                "name": "paid",
                "tenant_id": "acme",
                "event": "order.paid",
                "definition": "pay",
                "payload": {"pin": "[redacted]", "user": 7},
                "unknown_paths": "refuse",
                "is_enabled": True,
            },
            None,
        ),
    ),
]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize(("statement", "expected"), CHANGES)
def test_a_change_leaves_what_differs(audited, zone, statement, expected):
    audited.execute(f"set local timezone = '{zone}'")

    assert rows_after(audited, statement) == [expected]


@pytest.mark.parametrize(
    ("statement", "action"),
    [
        ("update mainspring.tokens set revoked_at = now() where name = 'ci'", "revoke"),
        ("delete from mainspring.tokens where name = 'ci'", "delete"),
        ("update mainspring.people set disabled_at = now() where name = 'ann'", "update"),
    ],
)
def test_the_audit_says_what_was_done(audited, statement, action):
    ((_, done, *_),) = rows_after(audited, statement)

    assert done == action


@pytest.mark.parametrize(
    ("noun", "off", "on"),
    [
        ("definitions", "is_active = false", "is_active = true"),
        ("schedules", "enabled = false", "enabled = true"),
        ("triggers", "is_enabled = false", "is_enabled = true"),
    ],
)
def test_what_was_stopped_and_goes_on_is_named_so(audited, noun, off, on):
    rows_after(audited, f"update mainspring.{noun} set {off}")

    actions = {row[1] for row in rows_after(audited, f"update mainspring.{noun} set {on}")}

    assert actions == {"activate" if noun == "definitions" else "enable"}


@pytest.mark.parametrize(
    "statement",
    [
        "update mainspring.tokens set last_used_at = now()",
        "update mainspring.people set last_seen_at = now()",
        "update mainspring.tenants set weight = weight",
        "update mainspring.definitions set priority = priority",
        "update mainspring.schedules set name = name",
        "update mainspring.triggers set name = name",
    ],
)
def test_what_nobody_decided_leaves_nothing(audited, statement):
    assert rows_after(audited, statement) == []


@pytest.mark.parametrize("kind", ["session", "login", "console"])
def test_a_session_is_no_change(audited, kind):
    statement = f"""
    insert into mainspring.tokens (kind, name, prefix, digest, role, person, created_by, expires_at)
    values ('{kind}', 'ann', 'msk_b', {DIGEST % 2}, 'operator', 'ann', 'ann', now());
    update mainspring.tokens set revoked_at = now() where kind = '{kind}';
    delete from mainspring.tokens where kind = '{kind}';
    """

    assert rows_after(audited, statement) == []


def test_a_new_token_is_kept_without_its_digest(audited):
    statement = f"""
    insert into mainspring.tokens (name, prefix, digest, role, tenant_id, created_by)
    values ('cd', 'msk_b', {DIGEST % 2}, 'viewer', 'acme', 'root')
    """

    ((tenant, action, noun, subject, _, before, after),) = rows_after(audited, statement)

    assert (tenant, action, noun, subject, before) == ("acme", "create", "token", "cd", None)
    assert after.items() >= {"role": "viewer", "prefix": "msk_b", "expires_at": None}.items()
    assert not after.keys() & {"digest", "created_at", "created_by", "last_used_at"}
