"""Throwaway databases for tests: cloned from a migrated template, dropped after use."""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from mainspring.db import embedded, migrate

_MEMORY = Path("/dev/shm")  # noqa: S108  # not a file of ours, the folder that lies in memory
_MEMORY_NEEDED = 1 << 30
# What a test writes need not outlive the machine; it still outlives any process.
_FORGETFUL = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_compression": "off",
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",
}
# Copying files is the quicker way by far where nobody waits for the disk.
_STRATEGY = """
select case when current_setting('fsync')::bool then 'wal_log' else 'file_copy' end
"""
_LOCK = "select pg_advisory_lock(hashtext('mainspring.tests'))"
_EXISTS = "select from pg_database where datname = %s"
# Left by runs that were killed; the number in the name is when they were made.
_FORGOTTEN = """
select datname from pg_database
 where datname ~ '^mainspring_test_\\d{10}_'
   and substring(datname from 'test_(\\d+)_')::bigint < extract(epoch from now()) - 86400
"""


@contextmanager
def throwaway_server() -> Iterator[str]:
    """The URL of an embedded server for tests alone, in memory where there is enough of it."""
    folder = _folder()
    folder.mkdir(mode=0o755, exist_ok=True)
    with embedded.running(folder) as server:
        # Tests set up what an ordinary owner may not, such as a server's settings.
        url = server.superuser_url
        with psycopg.connect(url, autocommit=True) as connection:
            for name, value in _FORGETFUL.items():
                connection.execute(
                    sql.SQL("alter system set {} = {}").format(sql.Identifier(name), value)
                )
            connection.execute("select pg_reload_conf()")
        drop_forgotten(url)
        yield url


def _folder() -> Path:
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
    has_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _MEMORY_NEEDED
    parent = _MEMORY if has_memory else Path(tempfile.gettempdir())
    return parent / f"mainspring-tests-{user}"


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """The URL of a new migrated database on the server; it is dropped in the end."""
    name = f"mainspring_test_{int(time.time())}_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        template = _ensure_template(connection, server_url)
        (strategy,) = connection.execute(_STRATEGY).fetchone() or ()
        connection.execute(
            sql.SQL("create database {} template {} strategy {}").format(
                sql.Identifier(name), sql.Identifier(template), sql.Identifier(strategy)
            )
        )
        try:
            yield database_named(server_url, name)
        finally:
            _drop(connection, name)


def drop_forgotten(server_url: str) -> None:
    """Drop what runs that were killed more than a day ago have left."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        for (name,) in connection.execute(_FORGOTTEN).fetchall():
            _drop(connection, name)


def database_named(url: str, name: str) -> str:
    """The same server, another database."""
    if "://" not in url:
        return make_conninfo(url, dbname=name)
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def template_name() -> str:
    """Another schema, another template; so programs of several versions share a server."""
    return f"mainspring_template_{migrate.schema_digest()[:12]}"


def _ensure_template(connection: psycopg.Connection[Any], server_url: str) -> str:
    name = template_name()
    if connection.execute(_EXISTS, (name,)).fetchone() is None:
        with psycopg.connect(server_url, autocommit=True) as making:
            making.execute(_LOCK)
            if making.execute(_EXISTS, (name,)).fetchone() is None:
                _make_template(making, server_url, name)
    return name


def _make_template(connection: psycopg.Connection[Any], server_url: str, name: str) -> None:
    # Under another name until it is whole, since nobody waits for a name that exists.
    unready = sql.Identifier(f"{name}_unready")
    _drop(connection, f"{name}_unready")
    connection.execute(sql.SQL("create database {}").format(unready))
    migrate.migrate_apart(database_named(server_url, f"{name}_unready"))
    connection.execute(
        sql.SQL("alter database {} rename to {}").format(unready, sql.Identifier(name))
    )


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(
        sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
    )
