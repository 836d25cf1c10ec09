"""The SQL door for a role of its own: the documented grants suffice, and nothing else is open."""

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from mainspring.domain.types import JobState
from tests.support.calls import call, enqueue
from tests.support.databases import role
from tests.support.rows import insert_attempt, insert_definition, insert_job, job

FUNCTIONS = ["enqueue", "enqueue_many", "cancel", "retry", "delete_job"]
# What a view calls, its reader must be allowed to; these look at nothing but what they are given.
PURE = {
    "error_line",
    "creator_of",
    "trigger_of",
    "redacted",
    "redacted_at",
    "is_visible",
    "is_own",
    "source_of",
    "may_set_role",
    "has_rights_of",
    "acts_as_owner",
    "check_function_name",
    "grant_of",
    "is_isolated",
}
# These look at settings and at the catalogue; defaults of columns call them.
DEFAULTS = {"creator", "is_program"}
VIEWS = ["attempt_status", "job_status", "queue_status", "worker_status"]
GRANTS = """
grant usage on schema mainspring to {role};
grant execute on function
    mainspring.enqueue, mainspring.enqueue_many, mainspring.cancel, mainspring.retry,
    mainspring.delete_job
    to {role};
grant select on
    mainspring.job_status, mainspring.attempt_status, mainspring.queue_status,
    mainspring.worker_status
    to {role};
"""
PUBLIC_FUNCTIONS = """
select proname from pg_proc
 where pronamespace = 'mainspring'::regnamespace
   and has_function_privilege('public', oid, 'execute')
"""
LOOSE_DEFINERS = """
select proname from pg_proc
 where pronamespace = 'mainspring'::regnamespace and prosecdef
   and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']
"""


@pytest.fixture(scope="module")
def caller(module_url):
    with role(module_url) as name:
        yield sql.Identifier(name)


def become(connection: psycopg.Connection, caller: sql.Identifier) -> psycopg.Connection:
    connection.execute(sql.SQL("set local role {}").format(caller))
    return connection


@pytest.fixture
def stranger(tx, caller):
    """The transaction of a role without any grant."""
    return become(tx, caller)


@pytest.fixture
def guest(tx, caller):
    """The transaction of a role with the documented grants."""
    tx.execute(sql.SQL(GRANTS).format(role=caller))
    return become(tx, caller)


@pytest.fixture
def failed_job(tx):
    job_id = insert_job(tx, JobState.FAILED)
    insert_attempt(tx, job_id)
    return job_id


def relations(connection: psycopg.Connection) -> list[str]:
    rows = connection.execute(
        "select relname from pg_class where relnamespace = 'mainspring'::regnamespace "
        "and relkind in ('r', 'p')"
    )
    return [name for (name,) in rows]


def functions(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute(
        "select proname from pg_proc where pronamespace = 'mainspring'::regnamespace"
    )
    return {name for (name,) in rows}


def is_denied(connection: psycopg.Connection, statement: sql.Composed) -> bool:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_the_grants_let_a_role_enqueue(guest):
    assert job(guest, enqueue(guest, dedupe_key="k", idempotency_key="i"))["state"] == "queued"
    assert len(call(guest, "enqueue_many", "work", payloads=["{}", "{}"])) == 2


def test_the_grants_let_a_role_cancel_retry_and_delete(failed_job, guest):
    assert call(guest, "retry", failed_job) == [failed_job]
    assert call(guest, "cancel", failed_job) == ["canceled"]
    call(guest, "delete_job", failed_job)

    assert guest.execute("select from mainspring.job_status").fetchall() == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_grants_let_a_role_read_the_views(failed_job, guest, view):
    statement = sql.SQL("select * from mainspring.{}").format(sql.Identifier(view))

    guest.execute(statement)


def test_a_refusal_reaches_a_role_with_its_own_code(guest):
    with pytest.raises(psycopg.Error) as caught, guest.transaction():
        enqueue(guest, "nothing")

    assert caught.value.sqlstate == "MS010"


@pytest.mark.parametrize("verb", ["select from", "delete from", "truncate"])
def test_the_grants_open_no_table(guest, verb):
    tables = relations(guest)
    statement = sql.SQL(verb + " mainspring.{}")
    opened = [t for t in tables if not is_denied(guest, statement.format(sql.Identifier(t)))]

    assert "jobs" in tables
    assert opened == []


@pytest.mark.parametrize("privilege", ["insert", "update", "delete", "truncate", "trigger"])
def test_the_views_are_read_only_for_a_role(guest, privilege):
    allowed = "select has_table_privilege('mainspring.' || %s, %s)"

    for view in VIEWS:
        assert guest.execute(allowed, (view, privilege)).fetchone() == (False,)
        assert guest.execute(allowed, (view, "select")).fetchone() == (True,)


def test_the_grants_open_no_other_function(guest):
    allowed = guest.execute(
        "select proname from pg_proc where pronamespace = 'mainspring'::regnamespace "
        "and has_function_privilege(oid, 'execute')"
    )

    assert {name for (name,) in allowed} == {*FUNCTIONS, *PURE, *DEFAULTS}
    assert functions(guest) > set(FUNCTIONS)


def test_no_function_that_looks_at_a_table_is_open_to_everyone(tx):
    assert {name for (name,) in tx.execute(PUBLIC_FUNCTIONS)} == PURE | DEFAULTS


@pytest.fixture
def secret_job(tx):
    schema = {"properties": {"word": {"writeOnly": True}}}
    insert_definition(tx, "login", arg_schema=Jsonb(schema))
    payload = Jsonb({"word": "hunter2"})
    return insert_job(tx, JobState.QUEUED, definition="login", payload=payload)


def test_the_grants_let_a_role_read_a_payload_without_its_secrets(secret_job, guest):
    assert job(guest, secret_job)["payload"] == {"word": "[redacted]"}


def test_a_role_without_grants_cannot_enqueue(stranger):
    with pytest.raises(psycopg.errors.InsufficientPrivilege), stranger.transaction():
        enqueue(stranger)


def test_every_function_with_its_owners_rights_pins_its_search_path(tx):
    assert tx.execute(LOOSE_DEFINERS).fetchall() == []


def test_a_callers_own_objects_are_not_taken_for_ours(guest):
    guest.execute("create temp table jobs (job_id bigint)")
    guest.execute("create function pg_temp.now() returns timestamptz return 'epoch'::timestamptz")
    guest.execute("set local search_path = pg_temp, pg_catalog")

    job_id = enqueue(guest, delay="1 hour")

    assert guest.execute("select count(*) from jobs").fetchone() == (0,)
    assert job(guest, job_id)["scheduled_for"].year > 2000
