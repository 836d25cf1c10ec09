"""The application's login: an ordinary role that owns its database, as on a managed service.

The superuser that `initdb` makes is for this package alone. SQL that people bring runs at most with
the rights of the owner, who can neither read files nor start programs. A data directory of an
earlier release, whose application logged in as the superuser, is handed over when it is opened.
"""

from typing import Any

import psycopg
from psycopg import Connection, sql

from mainspring.db import installation
from mainspring.db.embedded.postmasters import SUPERUSER, Postmaster

OWNER = "mainspring"

_IS_OWNED = """
select datdba = to_regrole('mainspring')
       and not exists (select from pg_class where relowner = current_user::regrole
                          and relnamespace = to_regnamespace('mainspring'))
  from pg_database where datname = current_database()
"""
_HAS_ROLE = "select to_regrole('mainspring') is not null"
_CREATE_ROLE = "create role mainspring login createrole createdb"
# PostgreSQL 16 and newer give a role that creates another no right to become it, unless asked to.
_GRANT_TO_SELF = "alter role mainspring set createrole_self_grant = 'set, inherit'"
# The login has the name of our schema, which "$user" would put before public: what people create
# without naming a schema would land among our tables. A path that somebody chose stays.
_HAS_PATH = """
select exists (select from pg_db_role_setting, unnest(setconfig) as setting
                where setrole = to_regrole('mainspring') and setdatabase = 0
                  and setting like 'search_path=%')
"""
_SET_PATH = "alter role mainspring set search_path = public"


def ensure_database(postmaster: Postmaster, name: str) -> None:
    """Create the database and its owner, or hand over one that belongs to the superuser."""
    try:
        with psycopg.connect(postmaster.url(name, SUPERUSER), autocommit=True) as connection:
            _ensure_owned(connection)
    except psycopg.OperationalError as error:
        if not _is_missing(error, name):
            raise
        _create(postmaster, name)


def _is_missing(error: psycopg.OperationalError, name: str) -> bool:
    # The error of a connection that was refused has no code.
    return f'database "{name}" does not exist' in str(error)


def _create(postmaster: Postmaster, name: str) -> None:
    with psycopg.connect(postmaster.url("postgres", SUPERUSER), autocommit=True) as connection:
        _ensure_role(connection)
        connection.execute(
            sql.SQL("create database {} owner {}").format(
                sql.Identifier(name), sql.Identifier(OWNER)
            )
        )


def _ensure_owned(connection: Connection[Any]) -> None:
    if _holds(connection, _IS_OWNED):
        _ensure_path(connection)
        return
    with connection.transaction():
        _ensure_role(connection)
        connection.execute(installation.script("own"))


def _ensure_role(connection: Connection[Any]) -> None:
    if not _holds(connection, _HAS_ROLE):
        connection.execute(_CREATE_ROLE)
        connection.execute(_GRANT_TO_SELF)
    _ensure_path(connection)


def _ensure_path(connection: Connection[Any]) -> None:
    if not _holds(connection, _HAS_PATH):
        connection.execute(_SET_PATH)


def _holds(connection: Connection[Any], question: str) -> bool:
    row = connection.execute(question.encode()).fetchone()
    return row is not None and bool(row[0])
