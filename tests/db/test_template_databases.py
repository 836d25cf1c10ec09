"""Throwaway databases: cloned whole, dropped in the end, and not left behind for ever."""

import time

import psycopg
import pytest
from psycopg import sql

from mainspring.db import migrate, template_databases


def names(server_url: str) -> set[str]:
    with psycopg.connect(server_url, autocommit=True) as connection:
        return {name for (name,) in connection.execute("select datname from pg_database")}


def test_a_fresh_database_is_migrated_and_dropped_in_the_end(server_url):
    with template_databases.fresh_database(server_url) as url, psycopg.connect(url) as connection:
        name = connection.info.dbname
        number = connection.execute("select max(number) from mainspring.migrations").fetchone()
        assert number == (migrate.newest(),)
        assert name in names(server_url)

    assert name not in names(server_url)


def test_it_is_dropped_after_a_failure_too(server_url):
    with pytest.raises(ZeroDivisionError), template_databases.fresh_database(server_url) as url:
        raise ZeroDivisionError

    assert url.partition("?")[0].rpartition("/")[2] not in names(server_url)


@pytest.mark.parametrize(("hours", "is_kept"), [(23, True), (25, False)])
def test_what_a_killed_run_left_a_day_ago_is_dropped(server_url, hours, is_kept):
    name = f"mainspring_test_{int(time.time()) - hours * 3600}_left{hours}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        template_databases.drop_forgotten(server_url)
        kept = name in names(server_url)
        connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))

    assert kept is is_kept


@pytest.mark.parametrize(
    ("url", "other"),
    [
        (
            "postgresql://ada@db:5432/app?sslmode=require",
            "postgresql://ada@db:5432/x?sslmode=require",
        ),
        ("postgresql://postgres@/app?host=%2Frun", "postgresql://postgres@/x?host=%2Frun"),
        ("host=db dbname=app", "dbname=x host=db"),
    ],
)
def test_another_database_on_the_same_server_is_named(url, other):
    assert template_databases.database_named(url, "x") == other
