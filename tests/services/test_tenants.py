"""Tenants in Python."""

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import DuplicateTenant, InvalidOption, TenantNotFound


def test_a_tenant_is_stored_with_what_it_was_given(app: Mainspring):
    made = app.tenants.create("acme", weight=2, max_running=5)

    assert (made.tenant_id, made.weight, made.max_running) == ("acme", 2, 5)
    assert app.tenants.get("acme") == made


def test_a_tenant_has_weight_1_and_no_limit_unless_told(app: Mainspring):
    made = app.tenants.create("acme")

    assert (made.weight, made.max_running) == (1, None)


def test_a_name_that_is_taken_is_refused(app: Mainspring):
    with pytest.raises(DuplicateTenant, match="tenant 'default' already exists"):
        app.tenants.create("default", weight=9)

    assert app.tenants.get("default").weight == 1


def test_an_update_changes_what_it_names(app: Mainspring):
    app.tenants.create("acme", weight=2, max_running=5)

    assert app.tenants.update("acme", weight=3).max_running == 5
    assert app.tenants.update("acme", max_running=None).max_running is None
    assert app.tenants.get("acme").weight == 3


def test_a_mistyped_field_is_named_with_the_right_one(app: Mainspring):
    with pytest.raises(
        InvalidOption, match="wieght is not a field of a tenant; did you mean weight"
    ):
        app.tenants.update("default", wieght=3)


@pytest.mark.parametrize("changes", [{"weight": 0}, {"max_running": -1}])
def test_what_is_out_of_range_changes_nothing(app: Mainspring, changes):
    with pytest.raises(InvalidOption):
        app.tenants.update("default", **changes)

    assert app.tenants.get("default").weight == 1


def test_a_tenant_that_is_not_there_is_not_found_and_one_like_it_is_named(app: Mainspring):
    app.tenants.create("acme")

    for call in (app.tenants.get, lambda name: app.tenants.update(name, weight=2)):
        with pytest.raises(TenantNotFound, match="no tenant 'acne'; did you mean 'acme'"):
            call("acne")


def test_tenants_are_listed_by_name_with_their_live_jobs(app: Mainspring):
    app.tenants.create("acme")
    app.enqueue("send", {}, tenant_id="acme")

    first, second = app.tenants.list()
    assert (first.tenant_id, first.ready, first.running) == ("acme", 1, 0)
    assert (second.tenant_id, second.ready) == ("default", 0)
    assert [state.tenant_id for state in app.tenants.list(after="acme")] == ["default"]
    assert len(app.tenants.list(limit=1)) == 1


def test_changes_are_in_the_audit(app: Mainspring, connection: psycopg.Connection):
    app.tenants.create("acme", weight=2)
    app.tenants.update("acme", weight=3)
    app.tenants.update("acme", weight=3)
    connection.execute("delete from mainspring.tenants where tenant_id = 'acme'")

    rows = connection.execute(
        "select tenant_id, action, before -> 'weight', after -> 'weight' from mainspring.audit"
        " where noun = 'tenant' and subject = 'acme' order by audit_id"
    ).fetchall()
    assert rows == [
        ("acme", "create", None, 2),
        ("acme", "update", 2, 3),
        ("acme", "delete", 3, None),
    ]
