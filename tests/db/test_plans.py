"""Plans: the same work for blocking and async callers; a plan sees what its steps raise."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from mainspring.db import plans
from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.db.plans import Plan, Statement, Statements
from mainspring.domain.errors import JobNotFound, MainspringError
from mainspring.settings import load

Run = Callable[[Plan[Any], Database], Any]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(load(database_url=database_url))
    yield opened
    opened.close()


async def run_blocking(plan: Plan[Any], database: Database) -> Any:
    return plans.run(plan, database)


both = pytest.mark.parametrize("run", [run_blocking, plans.arun])


def number(value: int) -> Call:
    return Call("select %(value)s::int", {"value": value})


def missing_job() -> Call:
    return Call("select mainspring.cancel(999)", {})


@both
async def test_a_plan_is_sent_the_rows_it_asked_for(run: Run, database):
    def add() -> Plan[int]:
        ((one,),) = yield Statement(number(1))
        ((two,),) = yield Statement(number(one + 1))
        return int(one + two)

    assert await run(add(), database) == 3


@both
async def test_a_plan_that_needs_nothing_asks_nothing(run: Run, database):
    def answer() -> Plan[int]:
        return 42
        yield Statement(number(1))

    assert await run(answer(), database) == 42


@both
async def test_a_plan_can_go_on_after_an_error_of_a_step(run: Run, database):
    def recover() -> Plan[int]:
        try:
            yield Statement(missing_job())
        except JobNotFound as error:
            found = error.job_id
        ((more,),) = yield Statement(number(1))
        return found + int(more)

    assert await run(recover(), database) == 1000


@both
async def test_an_error_that_a_plan_does_not_handle_is_the_callers(run: Run, database):
    def fail() -> Plan[None]:
        yield Statement(missing_job())

    with pytest.raises(JobNotFound):
        await run(fail(), database)


@both
async def test_an_error_that_a_plan_raises_later_has_no_other_behind_it(run: Run, database):
    def fail() -> Plan[None]:
        with suppress(JobNotFound):
            yield Statement(missing_job())
        yield Statement(number(1))
        raise MainspringError("something else")

    with pytest.raises(MainspringError, match="something else") as caught:
        await run(fail(), database)
    assert caught.value.__context__ is None


@both
async def test_statements_are_one_transaction(run: Run, database, connection):
    connection.execute("create table public.notes (n int)")
    connection.commit()

    def write() -> Plan[Any]:
        note = Call("insert into public.notes values (%(n)s) returning n", {"n": 1})
        return (yield Statements([note, missing_job()]))

    with pytest.raises(JobNotFound):
        await run(write(), database)
    assert connection.execute("select * from notes").fetchall() == []


def test_a_statement_joins_the_transaction_of_a_connection(database, database_url):
    with psycopg.connect(database_url) as own:
        own.execute("create table public.notes (n int)")
        note = Call("insert into public.notes values (%(n)s) returning n", {"n": 1})

        def write() -> Plan[Any]:
            first = yield Statement(note, own)
            rest = yield Statements([note, note], own)
            return first + rest

        assert plans.run(write(), database) == [(1,)] * 3
        own.rollback()
