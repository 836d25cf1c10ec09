"""Connections that log in as another role, each used once and closed.

SQL that people bring, such as the function of a definition or the condition of a schedule, can
leave something behind that runs later with the rights of whoever is logged in: a held cursor, a
deferred trigger, a domain named like a type of ours. So it never sees one of our connections:

    role_urls has the role?    that URL
    the role is our own login? our URL, on a new connection
    otherwise                  our URL with the role as its user and no password

What is reached in no way is refused, with what to do about it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mainspring.db import connect
from mainspring.domain.errors.database import DatabaseUnreachable, RoleLoginFailed
from mainspring.settings import Settings

_NAME = "mainspring role"


class RoleLogins:
    """Logs in as the roles that definitions and schedules name."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._url, self._use_pooler = url, settings.use_pooler
        self._urls, self._conditions_url = settings.urls_of_roles, settings.condition_database_url

    @asynccontextmanager
    async def as_role(self, role: str) -> AsyncIterator[AsyncConnection[Any]]:
        """A new connection with the rights of the role; raises RoleLoginFailed."""
        try:
            connection = await self._connect(self.url_of(role))
        except DatabaseUnreachable as error:
            raise RoleLoginFailed(role, connect.reason_of(error)) from None
        async with _closing(connection):
            yield connection

    @asynccontextmanager
    async def as_owner(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A new connection with our own login."""
        async with _closing(await self._connect(self._url)) as connection:
            yield connection

    @asynccontextmanager
    async def for_conditions(self, role: str | None) -> AsyncIterator[AsyncConnection[Any]]:
        """A new connection for a condition: with the login that all of them have, if there is one,
        else as the role."""
        if self._conditions_url is not None:
            async with _closing(await self._connect(self._conditions_url)) as connection:
                yield connection
        elif role is None:
            async with self.as_owner() as connection:
                yield connection
        else:
            async with self.as_role(role) as connection:
                yield connection

    async def ensure_conditions_run(self, role: str) -> None:
        """Raise RoleLoginFailed if no scheduler could log in for a condition of the role."""
        if self._conditions_url is None:
            async with self.as_role(role):
                return

    def ensure_conditions_run_blocking(self, role: str) -> None:
        """The same without an event loop."""
        if self._conditions_url is None:
            try:
                connect.connect_sync(self.url_of(role), name=_NAME).close()
            except DatabaseUnreachable as error:
                raise RoleLoginFailed(role, connect.reason_of(error)) from None

    def url_of(self, role: str) -> str:
        if role in self._urls:
            return self._urls[role]
        own = conninfo_to_dict(self._url)
        if own.get("user", _default_user()) == role:
            return self._url
        return make_conninfo("", **{**own, "user": role, "password": None})

    async def _connect(self, url: str) -> AsyncConnection[Any]:
        return await connect.connect(url, name=_NAME, use_pooler=self._use_pooler)


@asynccontextmanager
async def _closing(connection: AsyncConnection[Any]) -> AsyncIterator[AsyncConnection[Any]]:
    try:
        yield connection
    finally:
        await connection.close()


def _default_user() -> str:
    """Whom libpq logs in as where a URL names nobody."""
    defaults = {option.keyword: option.val for option in pq.Conninfo.get_defaults()}
    return os.fsdecode(defaults.get(b"user") or b"")


def is_superuser(connection: AsyncConnection[Any]) -> bool:
    """Whether the login is one, as the server said when it was made."""
    return connection.info.parameter_status("is_superuser") == "on"
