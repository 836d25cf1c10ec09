"""Connections: dedicated ones for the hot path, pools for the rest, and clear errors for both."""

import re
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import AsyncConnection, Connection, ConnectionInfo
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mainspring.db.pooler import BlockingPoolerConnection, PoolerConnection, split_options
from mainspring.db.unprepared import OwnBlockingConnection, OwnConnection
from mainspring.domain.errors.database import DatabaseTooOld, DatabaseUnreachable

MINIMUM_SERVER_VERSION = 150000

# What our statements, our functions and psycopg rely on, whatever the server, the database or the
# role says: how instants and intervals are written and arrays and texts are read, that each
# statement sees what was committed before it, and that policies apply. Our statements are short: to
# compile one, with the plan of each partition, takes a thousand times longer than to run it.
PINNED = MappingProxyType(
    {
        "array_nulls": "on",
        "bytea_output": "hex",
        "datestyle": "ISO",
        "default_transaction_isolation": "read committed",
        "extra_float_digits": "1",
        "intervalstyle": "postgres",
        "jit": "off",
        "row_security": "on",
        "standard_conforming_strings": "on",
        "transform_null_equals": "off",
    }
)
_PINNED_SETTINGS = " ".join(
    f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in PINNED.items()
)

# The hot statements must never fall into a scan of a whole table or index, whatever the
# statistics of a table that grows and shrinks by the second say: each row by its index entry.
_PINNED_PLANS = " ".join(
    f"-c {setting}"
    for setting in (
        "enable_seqscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
        "plan_cache_mode=force_generic_plan",
    )
)

# A network that goes silent is an error about as soon as a lease runs out, not when the kernel
# gives up after a quarter of an hour.
PATIENCE_SECONDS = 15.0
_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}
_SHORTEST_CONNECT_TIMEOUT = 2
_TEXT = {"client_encoding": "UTF8"}

# A server that does not answer, and a URL that is none.
_UNUSABLE = (psycopg.OperationalError, psycopg.ProgrammingError)
_MARKERS = ("FATAL:", "failed:")
_PASSWORD = re.compile(r"(\b(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)")
# To the last @, because a password that nobody encoded may hold anything.
_USER_AND_PASSWORD = re.compile(r"(://[^:@/?#]*:).*@", re.DOTALL)
_URLS = ("postgresql://", "postgres://")
# What libpq quotes is a name here; elsewhere it may be a piece of a password.
_NAMING = ("invalid URI query parameter", "invalid connection option")
# What with_options adds, and nobody has to know of.
_ADDED = re.compile(r"[?&]options=[^&]*$| ?\boptions='[^']*'")
_BEFORE_A_QUOTE = re.compile(r'(?:[^"]|"[^"]")*')


def connection_arguments(
    *, use_pooler: bool, pins_plans: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> dict[str, Any]:
    """Keyword arguments for a psycopg connection, which may be silent for `patience_seconds`; a
    pooler allows no prepared statements."""
    return {
        **_KEEPALIVE,
        **_TEXT,
        "tcp_user_timeout": int(patience_seconds * 1000),
        "connect_timeout": max(int(patience_seconds * 2 / 3), _SHORTEST_CONNECT_TIMEOUT),
        "autocommit": True,
        "options": f"{_PINNED_SETTINGS} {_PINNED_PLANS}" if pins_plans else _PINNED_SETTINGS,
        "prepare_threshold": None if use_pooler else 0 if pins_plans else 3,
    }


async def connect(
    url: str,
    *,
    name: str,
    use_pooler: bool = False,
    pins_plans: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
) -> AsyncConnection[Any]:
    """A dedicated connection in autocommit mode."""
    arguments = connection_arguments(
        use_pooler=use_pooler, pins_plans=pins_plans, patience_seconds=patience_seconds
    )
    try:
        target = with_options(url, arguments.pop("options"))
        arguments = _without_given(url, arguments)
        if use_pooler:
            target, settings = _without_settings(target)
            pooled = await PoolerConnection.connect(target, application_name=name, **arguments)
            await pooled.keep(settings)
            connection: AsyncConnection[Any] = pooled
        else:
            # What pins its plans is hot, prepares all it sends, and is connected again if need be.
            kind = AsyncConnection if pins_plans else OwnConnection
            connection = await kind.connect(target, application_name=name, **arguments)
    except _UNUSABLE as error:
        raise unreachable(url, error) from error
    if (version := _too_old(connection.info)) is not None:
        await connection.close()
        raise DatabaseTooOld(version)
    return connection


def connect_sync(
    url: str,
    *,
    name: str = "",
    use_pooler: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Connection[Any]:
    """A dedicated blocking connection in autocommit mode."""
    arguments = connection_arguments(use_pooler=use_pooler, patience_seconds=patience_seconds)
    if name:
        arguments["application_name"] = name
    try:
        target = with_options(url, arguments.pop("options"))
        arguments = _without_given(url, arguments)
        if use_pooler:
            target, settings = _without_settings(target)
            pooled = BlockingPoolerConnection.connect(target, **arguments)
            pooled.keep(settings)
            connection: Connection[Any] = pooled
        else:
            connection = OwnBlockingConnection.connect(target, **arguments)
    except _UNUSABLE as error:
        raise unreachable(url, error) from error
    if (version := _too_old(connection.info)) is not None:
        connection.close()
        raise DatabaseTooOld(version)
    return connection


def _without_given(url: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments but for those that the URL sets itself: psycopg would prefer the argument."""
    given = conninfo_to_dict(url).keys() - _TEXT.keys()
    return {name: value for name, value in arguments.items() if name not in given}


def _without_settings(target: str) -> tuple[str, dict[str, str]]:
    """The URL without the settings among its options, which a pooler refuses, and the settings."""
    settings, others = split_options(str(conninfo_to_dict(target).get("options") or ""))
    return make_conninfo(target, options=others or None), settings


def _too_old(info: ConnectionInfo) -> str | None:
    """The server's version if we cannot use it."""
    if info.server_version >= MINIMUM_SERVER_VERSION:
        return None
    return info.parameter_status("server_version") or "unknown"


def with_options(url: str, options: str) -> str:
    """The URL with server settings added at its end to those it already asks for."""
    if not options or url_problem(url):  # Whoever connects says what is wrong with it.
        return url
    given = conninfo_to_dict(url)
    whole = {**given, "options": f"{given['options']} {options}" if "options" in given else options}
    if url.startswith(_URLS):
        longer = f"{url}{'&' if '?' in url else '?'}options={quote(str(whole['options']))}"
        if conninfo_to_dict(longer) == whole:
            return longer
    return make_conninfo("", **whole)


def for_own_statements(url: str) -> str:
    """The URL for connections on which nothing runs but statements of ours. What others create in a
    schema of the login's own search_path, such as an operator for other types, could be chosen
    there instead of the system's, and run with our rights."""
    return with_options(url, "-c search_path=pg_catalog,pg_temp")


def unreachable(url: str, error: psycopg.Error) -> DatabaseUnreachable:
    """One sentence that names the server, the reason and the remedy, never the password."""
    return DatabaseUnreachable(
        f"cannot connect to {display_url(_ADDED.sub('', url))}: "
        f"{url_problem(url) or _reason(error)}; check the "
        "database URL (MAINSPRING_DATABASE_URL or --database-url) and that the server is running"
    )


def reason_of(error: DatabaseUnreachable) -> str:
    """What the server said, or the driver, of a connection that could not be made."""
    cause = error.__cause__
    return _reason(cause) if isinstance(cause, psycopg.Error) else str(error)


def _reason(error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if any(marker in line for marker in _MARKERS)]
    reason = (telling or lines or [type(error).__name__])[-1]
    for marker in _MARKERS:
        reason = reason.rpartition(marker)[2].strip()
    return reason


def url_problem(url: str) -> str | None:
    """What keeps the URL, or key=value text, from being read; None if nothing does."""
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        said = str(error).strip()
        if said.startswith(_NAMING):
            return said
        if not url.startswith(_URLS):
            return "it is neither a postgresql:// URL nor a key=value string"
        return _unquoted(said)
    return None


def _unquoted(text: str) -> str:
    """What stands before a quote of more than one character."""
    found = _BEFORE_A_QUOTE.match(text)
    return found[0].rstrip(" :") if found else ""


def display_url(url: str) -> str:
    """The URL, or key=value text, without its password."""
    return _USER_AND_PASSWORD.sub(r"\1***@", _PASSWORD.sub(r"\1***", url))
