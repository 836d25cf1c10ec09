"""Sessions: what each runs its statements as, and that a caller's reaches nothing of the owner."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.db.blocking_sessions import BlockingSession, ConnectionSession, at_once
from mainspring.db.caller_sessions import CallerSession
from mainspring.db.database import Database
from mainspring.db.pool import AsyncPool
from mainspring.db.request_sessions import RequestSession
from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.tenant_sessions import TenantSession, TransactionSession
from mainspring.domain.access.tokens import digest
from mainspring.domain.errors import JobNotFound
from mainspring.domain.errors.access import Unauthenticated
from mainspring.services import tokens
from mainspring.settings import load
from mainspring.store.tokens import enter

WHO = "select current_user::text, current_setting('mainspring.tenant', true)"
TRANSACTION = "select pg_current_xact_id()::text"
NUMBERS = "select n, n * 2 as twice from generate_series(1, 3) as n order by n"
MISSING_JOB = "select mainspring.cancel(999)"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(load(database_url=database_url))
    yield opened
    await opened.aclose()


@pytest.fixture
async def tenant_session(database: Database) -> TenantSession:
    await tokens.open_to_app(database)
    made = await tokens.create(database, "ci", "admin", tenant_id="default")
    return TenantSession(RequestSession(database, "tenant default"), enter(digest(made.text)))


@pytest.fixture(params=["connection", "database", "tenant", "transaction"])
async def session(
    request: pytest.FixtureRequest,
    aconnection: AsyncConnection,
    database: Database,
    tenant_session: TenantSession,
) -> AsyncIterator[Session]:
    match request.param:
        case "connection":
            yield aconnection
        case "database":
            yield database
        case "tenant":
            yield tenant_session
        case _:
            async with tenant_session.begin() as transaction:
                yield transaction


async def test_every_session_gives_rows_one_row_and_names(session: Session):
    assert await fetch_all(session, NUMBERS) == [(1, 2), (2, 4), (3, 6)]
    assert await fetch_one(session, NUMBERS) == (1, 2)
    assert await fetch_one(session, "select 1 where false") is None
    assert (await fetch_mappings(session, NUMBERS))[1] == {"n": 2, "twice": 4}


async def test_every_session_says_how_many_rows_a_statement_was_about(session: Session):
    assert (await session.execute(NUMBERS)).rowcount == 3


async def test_rows_can_be_taken_one_by_one_and_then_the_rest(session: Session):
    result = await session.execute(NUMBERS, {})
    assert await result.fetchone() == (1, 2)
    assert await result.fetchall() == [(2, 4), (3, 6)]
    assert await result.fetchone() is None


async def test_the_owner_and_a_caller_run_as_different_roles(
    database: Database, tenant_session: TenantSession
):
    ((owner, _),) = await fetch_all(database, WHO)
    ((role, tenant),) = await fetch_all(tenant_session, WHO)
    assert (role, tenant) == ("pg_database_owner", "default")
    assert owner != role


async def test_nothing_of_a_caller_is_left_on_the_connection(
    database: Database, tenant_session: TenantSession
):
    before = await fetch_all(database, WHO)
    await fetch_all(tenant_session, WHO)
    async with tenant_session.begin() as transaction:
        await fetch_all(transaction, WHO)
    ((owner, tenant),) = await fetch_all(database, WHO)
    assert owner == before[0][0]
    assert not tenant


async def test_a_transaction_of_a_caller_runs_as_the_caller(tenant_session: TenantSession):
    async with tenant_session.begin() as session, session.transaction() as connection:
        assert await fetch_all(session, WHO) == [("pg_database_owner", "default")]
        assert await fetch_all(connection, WHO) == [("pg_database_owner", "default")]


async def test_statements_are_transactions_of_their_own_unless_one_was_begun(
    tenant_session: TenantSession,
):
    apart = {(await fetch_all(tenant_session, TRANSACTION))[0] for _ in range(2)}
    async with tenant_session.begin() as session:
        together = {(await fetch_all(session, TRANSACTION))[0] for _ in range(2)}
    assert (len(apart), len(together)) == (2, 1)


async def test_statements_of_one_transaction_wait_for_each_other(tenant_session: TenantSession):
    async with tenant_session.begin() as session:
        found = await asyncio.gather(*(fetch_all(session, NUMBERS) for _ in range(5)))
    assert found == [[(1, 2), (2, 4), (3, 6)]] * 5


async def test_a_statement_of_a_caller_is_refused_once_the_token_is_revoked(
    database: Database, tenant_session: TenantSession
):
    await tokens.revoke(database, "ci", "default")
    with pytest.raises(Unauthenticated):
        await tenant_session.execute("select 1")
    with pytest.raises(Unauthenticated):
        async with tenant_session.begin():
            pass


@pytest.mark.parametrize("kind", [TenantSession, TransactionSession])
def test_the_sessions_of_a_caller_offer_nothing_of_the_owner(kind: type):
    assert not issubclass(kind, Database)
    offered = {name for name in vars(kind) if not name.startswith("_")}
    assert offered <= {"execute", "transaction", "begin"}


async def test_what_a_session_of_a_caller_holds_in_the_open_is_no_way_to_the_owner(
    tenant_session: TenantSession,
):
    async with tenant_session.begin() as transaction:
        for session in (tenant_session, transaction):
            held = {name: value for name, value in vars(session).items() if name[0] != "_"}
            assert list(held) == ["settings"]
            assert not isinstance(held["settings"], Database | AsyncPool | AsyncConnection)


async def test_errors_of_our_functions_come_as_ours(
    database: Database, tenant_session: TenantSession, connection: psycopg.Connection
):
    blocking = BlockingSession(database, connection)
    for session in (database, tenant_session):
        with pytest.raises(JobNotFound):
            await session.execute(MISSING_JOB)
    with pytest.raises(JobNotFound):
        at_once(blocking.execute(MISSING_JOB))


async def test_a_session_on_the_callers_connection_is_in_its_transaction(
    aconnection: AsyncConnection,
):
    async with aconnection.transaction():
        ((ours,),) = await fetch_all(CallerSession(aconnection), TRANSACTION)
        ((theirs,),) = await (await aconnection.execute(TRANSACTION)).fetchall()
    assert ours == theirs


def test_store_functions_serve_blocking_connections(connection: psycopg.Connection):
    session = ConnectionSession(connection)
    assert at_once(fetch_all(session, NUMBERS)) == [(1, 2), (2, 4), (3, 6)]
    assert at_once(fetch_mappings(session, NUMBERS))[0] == {"n": 1, "twice": 2}
    assert at_once(session.execute("create temporary table t as values (1), (2)")).rowcount == 2


def test_what_has_to_wait_is_refused_without_an_event_loop():
    with pytest.raises(RuntimeError, match="has to wait for something"):
        at_once(asyncio.sleep(0))
