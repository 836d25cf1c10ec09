"""Spare connections: kept and lent again, as long as they are good for it."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from mainspring.db.pool import SyncPool
from mainspring.domain.errors.database import DatabaseUnreachable
from tests.support.waiting import wait_until


@pytest.fixture
def pool(database_url: str) -> Iterator[SyncPool]:
    pool = SyncPool(database_url, size=1)
    yield pool
    pool.close()


def backend(pool: SyncPool) -> int:
    with pool.connection() as lent:
        return lent.info.backend_pid


def test_a_connection_that_came_back_is_lent_again(pool):
    assert backend(pool) == backend(pool)


def test_who_comes_while_all_are_lent_waits_for_one(pool):
    with ThreadPoolExecutor(1) as threads:
        with pool.connection() as lent:
            waiting = threads.submit(backend, pool)
            assert not waiting.done()
            first = lent.info.backend_pid

        assert waiting.result(10) == first


def test_a_connection_that_ended_meanwhile_is_not_lent(pool, connection):
    first = backend(pool)
    connection.execute("select pg_terminate_backend(%s)", (first,))
    wait_until(lambda: is_gone(connection, first))

    assert backend(pool) != first


def test_a_connection_inside_a_transaction_is_not_lent_again(pool):
    with pool.connection() as lent:
        first = lent.info.backend_pid
        lent.execute("begin")

    assert backend(pool) != first
    assert lent.closed


def test_an_error_gives_the_connection_back(pool):
    first = backend(pool)
    with pytest.raises(psycopg.errors.DivisionByZero), pool.connection() as lent:
        lent.execute("select 1 / 0")

    assert backend(pool) == first


def test_a_server_that_is_away_takes_no_place():
    pool = SyncPool("postgresql://127.0.0.1:1/none", size=1)

    for _ in range(2):  # The second would wait for ever.
        with pytest.raises(DatabaseUnreachable), pool.connection():
            pass


def test_a_fork_does_not_use_what_it_inherited(pool):
    first = backend(pool)
    child = os.fork()
    if child == 0:
        os._exit(backend(pool) == first)  # No clean-up: that is the parent's.

    assert os.waitpid(child, 0)[1] == 0
    assert backend(pool) == first


def is_gone(connection: psycopg.Connection, pid: int) -> bool:
    found = connection.execute("select from pg_stat_activity where pid = %s", (pid,))
    return found.fetchone() is None
