"""SQL conditions that no check could ever ask: refused when they are saved, and never run."""

from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidSchedule
from tests.support import rows
from tests.support.api import serving
from tests.support.databases import role

SCHEDULE: dict[str, Any] = {"name": "tick", "definition": "work", "cron": "@daily"}
BOUNDS: dict[str, Any] = {"gauge_lower": 1, "gauge_upper": 2}
ONE = "must be a single select"
WRONG = {
    "selct 1": f'{ONE} (syntax error at or near "selct")',
    "delete from mainspring.jobs": f'{ONE} (syntax error at or near "delete")',
    "analyze select 1": f'{ONE} (syntax error at or near "analyze")',
    "select 1; select 2": ONE,
    "commit": ONE,
    "-- nothing": ONE,
    "with gone as (delete from pg_class returning 1) select 1 from gone": ONE,
    "select": "must return a column",
}
# What is wrong with them now may be right by the time of a slot.
RIGHT = [
    "select true",
    "select true;",
    "select true -- as it is",
    "values (1)",
    "table mainspring.tenants",
    "with x as (select 1) select * from x order by 1 limit 1",
    "select count(*) > 0 from ordres",
    "select 1 / 0",
    "select '{%s}' = 'x%'",
]


@pytest.fixture(autouse=True)
def work(connection: psycopg.Connection) -> None:
    rows.insert_definition(connection, "work")


@pytest.fixture(params=["superuser", "role"])
def chosen(request: pytest.FixtureRequest, database_url: str) -> Any:
    """The fields of the role: none for our own login, which is a superuser in tests."""
    if request.param == "superuser":
        yield {}
        return
    with role(database_url) as name:
        yield {"condition_role": name}


@pytest.mark.parametrize("condition", WRONG)
def test_what_is_no_query_is_refused(database_url, chosen, condition):
    with Mainspring(database_url=database_url) as app:
        for field in ("condition_sql", "gauge_sql"):
            bounds = BOUNDS if field == "gauge_sql" else {}
            given: dict[str, Any] = {**SCHEDULE, **chosen, **bounds, field: condition}
            with pytest.raises(InvalidSchedule) as refused:
                app.schedules.create(**given)
            assert str(refused.value).startswith(f"{field}: {WRONG[condition]}")
        assert app.schedules.list() == []


@pytest.mark.parametrize("condition", RIGHT)
def test_what_may_be_asked_later_is_taken(database_url, chosen, condition):
    with Mainspring(database_url=database_url) as app:
        made = app.schedules.create(**SCHEDULE, **chosen, condition_sql=condition)
        app.schedules.delete("tick")

    assert made.spec.condition_sql == condition


def test_a_change_to_what_is_no_query_is_refused(database_url):
    with Mainspring(database_url=database_url) as app:
        app.schedules.create(**SCHEDULE, condition_sql="select true")
        with pytest.raises(InvalidSchedule, match=f"^condition_sql: {ONE}"):
            app.schedules.update("tick", condition_sql="selct 1")
        # Another field can be changed whatever the condition says.
        app.schedules.update("tick", description="nightly")


def test_a_condition_is_not_run_when_it_is_saved(database_url, connection):
    connection.execute("create sequence asked")
    connection.execute("grant all on sequence asked to pg_read_all_data")
    with Mainspring(database_url=database_url) as app:
        app.schedules.create(**SCHEDULE, condition_sql="select nextval('asked') > 0")

    assert connection.execute("select is_called from asked").fetchone() == (False,)


async def test_rest_refuses_it_with_the_field(database_url):
    async with serving(database_url) as api:
        wrong = await api.post("/schedules", {**SCHEDULE, "condition_sql": "selct 1"})

    assert wrong.status_code == 422
    assert f"condition_sql: {ONE}" in wrong.json()["detail"]


def test_a_login_that_cannot_be_had_now_is_no_reason_to_refuse(database_url, monkeypatch):
    monkeypatch.setenv("MAINSPRING_CONDITION_DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    with Mainspring(database_url=database_url) as app:
        assert app.schedules.create(**SCHEDULE, condition_sql="selct 1").spec.name == "tick"
