"""Conditions of schedules whose role nobody can log in as: refused when they are saved."""

from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidSchedule
from tests.support.api import serving
from tests.support.databases import role

CONDITION: dict[str, Any] = {"condition_sql": "select true", "condition_role": "pg_monitor"}
REFUSED = (
    'condition_role: cannot log in as pg_monitor: role "pg_monitor" is not permitted to log in'
)
SCHEDULE: dict[str, Any] = {"name": "tick", "definition": "work", "cron": "@daily"}


@pytest.fixture
def own(database_url: str, connection: psycopg.Connection) -> Mainspring:
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    return Mainspring(database_url=database_url)


def test_a_role_that_nobody_can_log_in_as_is_refused(own):
    with (
        own,
        pytest.raises(InvalidSchedule, match=f"^{REFUSED}; run `alter role pg_monitor login`"),
    ):
        own.schedules.create(**SCHEDULE, **CONDITION)


def test_it_is_refused_in_a_transaction_of_the_caller_too(own, connection):
    with own, pytest.raises(InvalidSchedule, match=REFUSED):
        own.schedules.create(**SCHEDULE, **CONDITION, connection=connection)


@pytest.mark.parametrize("change", [CONDITION, {"condition_role": "pg_monitor"}])
def test_a_change_to_such_a_role_is_refused(own, change):
    with own:
        own.schedules.create(**SCHEDULE, condition_sql="select true")
        with pytest.raises(InvalidSchedule, match=REFUSED):
            own.schedules.update("tick", **change)


def test_with_a_login_for_all_conditions_the_role_needs_none(database_url, own, monkeypatch):
    monkeypatch.setenv("MAINSPRING_CONDITION_DATABASE_URL", database_url)
    with Mainspring(database_url=database_url) as app:
        assert app.schedules.create(**SCHEDULE, **CONDITION).spec.condition_role == "pg_monitor"


def test_a_role_that_can_log_in_is_taken(own, database_url):
    with own, role(database_url) as name:
        made = own.schedules.create(**SCHEDULE, condition_sql="select true", condition_role=name)
        assert made.spec.condition_role == name
        own.schedules.delete("tick")


async def test_an_operator_adds_a_condition_to_a_schedule_of_a_tenant(database_url, connection):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    async with serving(database_url) as api:
        made = await api.post("/schedules", SCHEDULE, role="admin", tenant="acme")
        assert made.status_code == 201, made.text
        path, query = "/schedules/tick", {"tenant": "acme"}
        wrong = await api.ask("PATCH", path, json=CONDITION, params=query)
        right = await api.ask("PATCH", path, json={"condition_sql": "select true"}, params=query)

    assert (wrong.status_code, right.status_code) == (422, 200), right.text
    assert REFUSED in wrong.json()["detail"]
    assert right.json()["condition_role"] == connection.info.user
