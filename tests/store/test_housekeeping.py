"""Pruning of tables that are not ours, in SQL: only old rows of plain tables, few at a time."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.support.databases import role
from tests.support.rows import refused

TABLES = """
create schema civic;
create table civic.sessions (id integer, seen_at timestamptz);
insert into civic.sessions
select n, now() - n * interval '1 day' from generate_series(1, 100) as n;
create table civic."Odd; Names" (id integer, "The Day" date);
insert into civic."Odd; Names" values (1, current_date - 10), (2, current_date);
create table civic.parts (at timestamptz) partition by range (at);
create view civic.seen as select * from civic.sessions;
create table civic.logs (id integer, at timestamp);
insert into civic.logs values (1, now() - interval '2 days'), (2, now()), (3, null);
create table civic.more () inherits (civic.logs);
insert into civic.more values (4, now() - interval '2 days');
"""


@pytest.fixture
def civic(tx: psycopg.Connection) -> psycopg.Connection:
    tx.execute(TABLES)
    return tx


def prune(
    connection: psycopg.Connection,
    table: str | None,
    column: str | None = "seen_at",
    *,
    age: str | None = "30 days",
    batch: int | None = 1000,
) -> int:
    row = connection.execute(
        "select mainspring.prune_table(%s, %s, %s::interval, %s)", (table, column, age, batch)
    ).fetchone()
    assert row is not None
    return int(row[0])


def left(connection: psycopg.Connection, table: str = "civic.sessions") -> list[int]:
    rows = connection.execute(f"select id from only {table} order by id".encode()).fetchall()
    return [number for (number,) in rows]


def test_rows_older_than_the_age_go_and_others_stay(civic):
    assert prune(civic, "civic.sessions") == 70

    assert left(civic) == list(range(1, 31))


def test_a_batch_is_no_larger_than_asked(civic):
    assert [prune(civic, "civic.sessions", batch=50) for _ in range(3)] == [50, 20, 0]


def test_with_an_index_the_oldest_go_first(civic):
    civic.execute("create index on civic.sessions (seen_at)")

    assert prune(civic, "civic.sessions", batch=10) == 10
    assert left(civic)[-1] == 90


def test_dates_and_timestamps_without_a_zone_are_taken_too(civic):
    assert prune(civic, 'civic."Odd; Names"', "The Day", age="5 days") == 1
    assert left(civic, 'civic."Odd; Names"') == [2]
    assert prune(civic, "civic.logs", "at", age="1 day") == 1
    assert left(civic, "civic.logs") == [2, 3]


def test_tables_that_inherit_are_left_alone(civic):
    prune(civic, "civic.logs", "at", age="1 day")

    assert left(civic, "civic.more") == [4]


def test_rows_that_someone_holds_are_passed_over(server_url, module_url):
    with psycopg.connect(module_url) as one, psycopg.connect(module_url) as other:
        one.execute(TABLES)
        one.commit()
        try:
            one.execute("select from civic.sessions where id = 100 for update")
            assert prune(other, "civic.sessions") == 70
            other.rollback()
        finally:
            one.rollback()
            one.execute("drop schema civic cascade")
            one.commit()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "table null must be a name with its schema"),
        ("sessions", "must be a name with its schema"),
        ("a.civic.sessions", "must be a name with its schema"),
        ("civic.sessions; drop table x", "must be a name with its schema"),
        ("mainspring.jobs", "in a schema that cannot be pruned"),
        ('"mainspring".jobs', "in a schema that cannot be pruned"),
        ("MAINSPRING.jobs", "in a schema that cannot be pruned"),
        ("mainspring_calls.x", "in a schema that cannot be pruned"),
        ("pg_catalog.pg_class", "in a schema that cannot be pruned"),
        ("pg_temp.x", "in a schema that cannot be pruned"),
        ("information_schema.tables", "in a schema that cannot be pruned"),
        ("civic.nothing", "does not exist"),
        ("civic.seen", "is not a table"),
        ("civic.parts", "is partitioned"),
    ],
)
def test_other_tables_are_refused(civic, table, message):
    with refused(civic, "MS003", message, option="table"):
        prune(civic, table)


# Code of others, which a delete would run with our rights


@pytest.fixture
def other(server_url: str) -> Iterator[str]:
    """A role with fewer rights than ours; asked for before the transaction that names it, since it
    is dropped once that is over."""
    with role(server_url) as name:
        yield name


@pytest.fixture
def login(server_url: str) -> Iterator[str]:
    with role(server_url) as name:
        yield name


def run_for(connection: psycopg.Connection, statements: str, other: str) -> None:
    connection.execute(sql.SQL(statements).format(other=sql.Identifier(other)))


TRIGGER = """
create function civic.trap() returns trigger language plpgsql as
    'begin delete from civic.logs; return old; end';
create trigger trap before delete on civic.sessions for each row execute function civic.trap();
"""
CHECKS = """
create function civic.is_fine(value integer) returns boolean immutable language sql
    return value is not null;
"""
CASCADE = """
alter table civic.sessions add primary key (id);
create table civic.carts (id integer primary key, session_id integer
    references civic.sessions on delete cascade);
create table civic.items (cart_id integer references civic.carts on delete set null);
"""
REFERENCE = """
alter table civic.sessions add primary key (id);
create table civic.carts (session_id integer references civic.sessions);
"""


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("alter table civic.sessions owner to {other}", "civic.sessions belongs to {other}"),
        ("alter schema civic owner to {other}", "schema civic belongs to {other}"),
        (
            "grant trigger on civic.sessions to {other}",
            "{other} may create triggers on civic.sessions",
        ),
        ("grant all on civic.sessions to public", "public may create triggers on civic.sessions"),
        (
            TRIGGER + "alter function civic.trap() owner to {other}",
            "civic.sessions calls civic.trap() of {other}",
        ),
        (
            CHECKS + "create policy fine on civic.sessions using (civic.is_fine(id));"
            "alter function civic.is_fine owner to {other}",
            "civic.sessions calls civic.is_fine(integer) of {other}",
        ),
        (
            CHECKS + "create operator civic.!! (function = civic.is_fine, rightarg = integer);"
            "create index on civic.sessions (seen_at) where operator(civic.!!) id;"
            "alter function civic.is_fine owner to {other}",
            "civic.sessions calls civic.is_fine(integer) of {other}",
        ),
        (
            CHECKS + "create rule fine as on delete to civic.sessions where civic.is_fine(old.id)"
            " do also delete from civic.logs; alter function civic.is_fine owner to {other}",
            "civic.sessions calls civic.is_fine(integer) of {other}",
        ),
        (CASCADE + "alter table civic.items owner to {other}", "civic.items belongs to {other}"),
    ],
)
def test_a_table_that_others_can_give_code_is_refused(other, civic, statements, message):
    run_for(civic, statements, other)

    with refused(civic, "MS003", re.escape(message.format(other=other)), option="table"):
        prune(civic, "civic.sessions")
    assert len(left(civic)) == 100


@pytest.mark.parametrize(
    "statements",
    [
        TRIGGER,
        CHECKS + "alter table civic.sessions add check (civic.is_fine(id))",
        "grant select, insert, update, delete on civic.sessions to {other}, public",
        "alter schema civic owner to pg_database_owner",
        CASCADE,
        # They read it, and a delete runs nothing of theirs.
        CHECKS + "create view civic.fine as select * from civic.sessions where civic.is_fine(id);"
        "alter function civic.is_fine owner to {other}; alter view civic.fine owner to {other}",
        REFERENCE
        + "alter table civic.carts owner to {other}; grant usage on schema civic to {other}",
    ],
)
def test_a_table_with_code_of_our_own_is_pruned(other, civic, statements):
    run_for(civic, statements, other)

    assert prune(civic, "civic.sessions") == 70


def test_the_refusal_says_what_to_do(other, civic):
    run_for(civic, "alter table civic.sessions owner to {other}", other)
    owner = civic.info.user
    remedy = (
        f"run `alter table civic.sessions owner to {owner}`, or delete the rows in a definition"
    )
    with refused(civic, "MS003", remedy, option="table"):
        prune(civic, "civic.sessions")

    run_for(civic, f"alter table civic.sessions owner to {owner}", other)
    assert prune(civic, "civic.sessions") == 70


def test_a_role_that_has_our_rights_anyway_may_own_the_table(other, login, civic):
    names = {"other": sql.Identifier(other), "login": sql.Identifier(login)}
    civic.execute(
        sql.SQL(
            "alter table civic.sessions owner to {other}; alter schema civic owner to {login};"
            "grant select, update, delete on civic.sessions to {login};"
            "grant usage on schema mainspring to {login};"
            "grant execute on all functions in schema mainspring to {login}"
        ).format(**names)
    )
    civic.execute(sql.SQL("set local role {login}").format(**names))
    with refused(civic, "MS003", f"civic.sessions belongs to {other}", option="table"):
        prune(civic, "civic.sessions")

    civic.execute(sql.SQL("reset role; grant {login} to {other}").format(**names))
    civic.execute(sql.SQL("set local role {login}").format(**names))
    assert prune(civic, "civic.sessions") == 70


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "column null of civic.sessions does not exist"),
        ("nothing", "does not exist"),
        ("ctid", "does not exist"),
        ("id", "is integer, neither a date nor a timestamp"),
        ("seen_at; --", "does not exist"),
    ],
)
def test_other_columns_are_refused(civic, column, message):
    with refused(civic, "MS003", message, option="column"):
        prune(civic, "civic.sessions", column)


@pytest.mark.parametrize("age", [None, "0", "-1 day"])
def test_an_age_must_be_more_than_zero(civic, age):
    with refused(civic, "MS003", "age must be more than zero", option="age"):
        prune(civic, "civic.sessions", age=age)


@pytest.mark.parametrize("batch", [None, 0, 100_001])
def test_a_batch_has_a_size(civic, batch):
    with refused(civic, "MS003", "batch must be from 1 to 100000", option="batch"):
        prune(civic, "civic.sessions", batch=batch)


def test_a_key_that_is_built_in_cannot_be_taken_by_sql(civic):
    civic.execute(
        "create function civic.f() returns jsonb language sql as $$ select '{}'::jsonb $$"
    )
    with pytest.raises(psycopg.Error, match="is reserved") as caught, civic.transaction():
        civic.execute(
            "insert into mainspring.definitions (key, kind, spec)"
            " values ('mainspring.mine', 'sql', '{\"function\": \"civic.f\"}')"
        )
    assert caught.value.sqlstate == "MS050"
