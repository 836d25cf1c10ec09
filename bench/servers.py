"""One PostgreSQL server for the whole run, and a fresh database for every measurement.

A database is cloned from a template that holds the system's schema and the rows the case starts
from; each template is built once and kept until the run ends.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

_PREFIX: Final = "bench_"
_SETTINGS: Final = ("server_version", "synchronous_commit", "fsync", "shared_buffers")


class Server:
    def __init__(self, url: str) -> None:
        self._url = url
        self._admin: Connection[Any] = psycopg.connect(url, autocommit=True)
        self._templates: set[str] = set()
        self._drop_left_over()

    def close(self) -> None:
        self._drop_left_over()
        self._admin.close()

    def describe(self) -> str:
        shown = [f"{name} {self._value(sql.SQL('show {}'), name)}" for name in _SETTINGS]
        return ", ".join(shown)

    @contextmanager
    def database(self, template: str, fill: Callable[[str], None]) -> Iterator[str]:
        """The DSN of a clone of a template; `fill` makes the template if there is none yet."""
        self._ensure_template(template, fill)
        name = f"{_PREFIX}measured"
        self._create(name, template)
        try:
            self._admin.execute("checkpoint")
            # What was copied and what was dropped must not be on its way to the disk still.
            os.sync()
            yield self._dsn(name)
        finally:
            self._drop(name)

    def _ensure_template(self, template: str, fill: Callable[[str], None]) -> None:
        name = _PREFIX + template
        if name in self._templates:
            return
        # One whose filling failed may be left from an earlier round.
        self._drop(name)
        self._create(name, None)
        fill(self._dsn(name))
        with psycopg.connect(self._dsn(name), autocommit=True) as connection:
            connection.execute("vacuum (analyze)")
        self._templates.add(name)

    def _create(self, name: str, template: str | None) -> None:
        source = _PREFIX + template if template else "template0"
        # A file copy, because the other way writes the whole template to the log first.
        self._admin.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(source)
            )
        )

    def _drop(self, name: str) -> None:
        statement = sql.SQL("drop database if exists {} with (force)")
        self._admin.execute(statement.format(sql.Identifier(name)))

    def _drop_left_over(self) -> None:
        query = "select datname from pg_database where starts_with(datname, %s)"
        for (name,) in self._admin.execute(query, (_PREFIX,)).fetchall():
            self._drop(name)

    def _dsn(self, database: str) -> str:
        return database_url(self._url, database)

    def _value(self, statement: sql.SQL, name: str) -> str:
        row = self._admin.execute(statement.format(sql.Identifier(name))).fetchone()
        return str(row[0]) if row else ""


def database_url(url: str, database: str) -> str:
    """The URL of another database on the same server, in the one spelling all drivers read."""
    parts = conninfo_to_dict(url)
    host, port = str(parts.get("host") or "localhost"), parts.get("port") or 5432
    account = str(parts.get("user") or "postgres")
    if password := parts.get("password"):
        account += f":{password}"
    if host.startswith("/"):
        return f"postgresql://{account}@/{database}?host={host}&port={port}"
    return f"postgresql://{account}@{host}:{port}/{database}"


@contextmanager
def opened(url: str | None, data_dir: Path | None) -> Iterator[Server]:
    """The server at a URL, or one that Mainspring brings along."""
    if url:
        yield from _used(url)
        return
    from mainspring.db import embedded

    with embedded.running(data_dir or _default_data_dir()) as running:
        # The cases write checkpoints, which the owner of a database may not.
        yield from _used(running.superuser_url)


def _used(url: str) -> Iterator[Server]:
    server = Server(url)
    try:
        yield server
    finally:
        server.close()


def _default_data_dir() -> Path:
    # Apart from the data people keep; below /root the server's own account could not reach it.
    return Path("/var/lib/mainspring-bench") if os.geteuid() == 0 else _home_data_dir()


def _home_data_dir() -> Path:
    return Path.home() / ".local" / "share" / "mainspring-bench"


def count(
    connection: Connection[Any], query: str, params: Mapping[str, object] | None = None
) -> int:
    row = connection.execute(query, params).fetchone()
    return int(row[0]) if row else 0
