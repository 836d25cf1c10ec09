"""The first start of a data directory, and every start after a good end."""

import time

import psycopg

from mainspring.db import embedded
from tests.db.embedded.folders import socket_dir
from tests.db.embedded.processes import ACQUIRE, answers, run_python
from tests.support.waiting import wait_until


def test_processes_that_start_together_share_one_new_server(folder, hold):
    holders = [hold(folder / "data") for _ in range(3)]

    assert len({holder.server() for holder in holders}) == 1


def test_a_new_database_is_unicode_and_closed_to_others(data_dir):
    with embedded.running(data_dir) as server, psycopg.connect(server.url) as connection:
        found = connection.execute(
            "select current_database(), current_setting('server_encoding'), "
            "current_setting('listen_addresses'), lower('Ä')"
        )

        assert found.fetchone() == ("mainspring", "UTF8", "", "ä")
        assert socket_dir(server.url).stat().st_mode & 0o777 == 0o700
        assert (data_dir / "postgres").stat().st_mode & 0o777 == 0o700
        assert data_dir.stat().st_mode & 0o007 == 0


def test_a_start_killed_inside_initdb_does_not_stop_the_next_one(folder):
    first = run_python(ACQUIRE, folder / "data")
    wait_until(lambda: any(folder.glob("data/postgres.new-*/*")), 20)
    first.kill()
    first.communicate()
    assert not (folder / "data" / "postgres").exists()

    with embedded.running(folder / "data") as server:
        assert answers(server.url)


def test_leftovers_of_a_killed_initdb_are_removed(data_dir):
    leftover = data_dir / "postgres.new-abc"
    leftover.mkdir()
    (leftover / "PG_VERSION").write_text("18\n")

    with embedded.running(data_dir):
        assert not leftover.exists()


def test_a_database_that_was_never_created_is_created_on_joining(data_dir, hold):
    url = hold(data_dir).server()[1]
    with psycopg.connect(url.replace("/mainspring?", "/postgres?"), autocommit=True) as connection:
        connection.execute("drop database mainspring")

    with embedded.running(data_dir) as server:
        psycopg.connect(server.url).close()


def test_a_second_start_takes_little_time(data_dir):
    begun_at = time.monotonic()

    with embedded.running(data_dir):
        assert time.monotonic() - begun_at < 3
