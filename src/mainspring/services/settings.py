"""Settings looked at before anything starts: what counts, and all that is wrong or doubtful."""

import ipaddress
import os
import shlex
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mainspring.db import connect, migrate
from mainspring.db.connect import display_url, url_problem
from mainspring.db.database import Database
from mainspring.db.embedded import programs
from mainspring.domain.errors import MainspringError, SettingsError
from mainspring.domain.errors.database import EmbeddedServerMissing
from mainspring.domain.secrets.paths import REDACTED
from mainspring.settings import Settings, rules
from mainspring.settings.fields import SecretText
from mainspring.settings.file import SettingsFile, find
from mainspring.settings.model import FIELDS, NAMES, range_of
from mainspring.settings.rules import Finding, Level, Origin, error, variable, warning
from mainspring.settings.sources import Sources, gather, given, read_environment, settle

_URLS = ("database_url", "condition_database_url")
_OTHERS_READ = 0o077
_OTHERS_WRITE = 0o022
_ANYONE_WRITES = 0o002


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting as people may see it."""

    key: str
    value: str | float | None
    origin: Origin
    range: str
    meaning: str


def entries(**flags: Any) -> list[Entry]:
    """All settings with what counts; raises SettingsError if one is wrong."""
    sources = gather(**flags)
    settings, winners = settle(sources), sources.winners()
    return [
        Entry(
            key=name,
            value=shown(name, getattr(settings, name)),
            origin=winners[name].origin if name in winners else Origin.DEFAULT,
            range=range_of(name),
            meaning=field.description,
        )
        for name, field in FIELDS.items()
    ]


def shown(name: str, value: Any) -> str | float | None:
    """A value without what is secret in it, and without what would upset a terminal."""
    if isinstance(value, SecretText):
        return REDACTED if value else ""
    if name in _URLS and value is not None:
        return REDACTED if url_problem(value) else _printable(display_url(value))
    return _printable(str(value)) if isinstance(value, str | Path) else value


def _printable(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def check(**flags: Any) -> list[Finding]:
    """Everything that is wrong, then everything that is doubtful; connects to nothing."""
    sources, found = _read(flags)
    settings = sources.usable()
    found += sources.all_problems()
    found += _wrong_urls(settings)
    found += _missing_packages(settings)
    found += _wrong_directories(settings.command_paths)
    found += _wrong_host(settings.host)
    found += rules.unknown_variables(os.environ, NAMES)
    found += _empty_urls(sources)
    found += file_doubts(sources.file)
    found += rules.doubts(settings.values())
    return sorted(found, key=lambda finding: finding.level is not Level.ERROR)


async def check_connections(**flags: Any) -> list[Finding]:
    """Whether the databases answer, are new enough and migrated; starts the embedded one."""
    sources, _ = _read(flags)
    settings = sources.usable()
    database = Database(settings)
    found: list[Finding] = []
    try:
        await _ensure_ready(database)
    except MainspringError as problem:
        found.append(error(str(problem), "database_url"))
    finally:
        database.close()
    if settings.condition_database_url is not None:
        try:
            await (await _connect(settings, settings.condition_database_url)).close()
        except MainspringError as problem:
            found.append(error(str(problem), "condition_database_url"))
    for role, url in settings.urls_of_roles.items():
        try:
            await (await _connect(settings, url)).close()
        except MainspringError as problem:
            found.append(error(f"role_urls, {role}: {problem}", "role_urls"))
    return found


async def _ensure_ready(database: Database) -> None:
    async with await _connect(database.settings, database.url) as connection:
        await migrate.check_rights(connection)
        await migrate.check(connection)


async def _connect(settings: Settings, url: str) -> Any:
    return await connect.connect(url, name="mainspring check", use_pooler=settings.use_pooler)


def _read(flags: dict[str, Any]) -> tuple[Sources, list[Finding]]:
    """The sources, without a file that cannot be read."""
    try:
        return gather(**flags), []
    except SettingsError as problem:
        path, _ = find()
        nothing = SettingsFile(path, {}, None)
        return Sources(given(flags), read_environment(), nothing), [error(str(problem))]


def _wrong_urls(settings: Settings) -> Iterator[Finding]:
    for name in _URLS:
        url = getattr(settings, name)
        if url is not None and (problem := url_problem(url)) is not None:
            yield error(f"setting {name} cannot be read: {problem}", name)
    for role, url in settings.urls_of_roles.items():
        if (problem := url_problem(url)) is not None:
            yield error(
                f"setting role_urls: the URL of {role} cannot be read: {problem}", "role_urls"
            )


def _missing_packages(settings: Settings) -> Iterator[Finding]:
    if settings.encryption_keys and find_spec("cryptography") is None:
        said = "encryption_keys needs a package; run `pip install 'mainspring[encryption]'`"
        yield error(said, "encryption_keys")
    if settings.database_url is None:
        try:
            programs.installation()
        except EmbeddedServerMissing as problem:
            yield error(str(problem), "database_url")


def _wrong_directories(paths: Iterable[Path]) -> Iterator[Finding]:
    key = "command_directories"
    for path in paths:
        try:
            mode = path.stat().st_mode
            is_folder = path.is_dir()
        except OSError as problem:
            yield error(f"{key}: {path} cannot be used: {problem.strerror}", key)
            continue
        if not is_folder:
            yield error(f"{key}: {path} is not a directory", key)
        elif mode & _ANYONE_WRITES:
            yield warning(
                f"{key}: {path} is writable by anyone, so anyone can add programs that jobs run",
                key,
            )
        if not path.is_absolute():
            yield warning(
                f"{key}: {path} depends on the directory that a worker starts in; use an absolute "
                "path",
                key,
            )


def _wrong_host(host: str) -> Iterator[Finding]:
    """A name is looked up, as the server would."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            yield error(f"setting host: {host!r} is not an address of this machine", "host")


def _empty_urls(sources: Sources) -> Iterator[Finding]:
    for name in _URLS:
        if sources.environment.get(name) == "":
            yield warning(
                f"{variable(name)} is set but empty, which is the same as not setting it", name
            )


def file_doubts(file: SettingsFile) -> Iterator[Finding]:
    """What others can do with the file."""
    if file.mode is None:
        return
    name = shlex.quote(str(file.path))
    secret = [key for key, value in file.values.items() if _is_secret(key, value)]
    if secret and file.mode & _OTHERS_READ:
        said = f"{file.path} contains {secret[0]} and is readable by others; run `chmod 600 {name}`"
        yield warning(said, secret[0])
    if file.mode & _OTHERS_WRITE:
        said = (
            f"{file.path} is writable by others, who could change what runs here; run `chmod go-w "
            f"{name}`"
        )
        yield warning(said)


def _is_secret(key: str, value: Any) -> bool:
    if key in _URLS:
        return isinstance(value, str) and shown(key, value) != value
    return key == "encryption_keys" and bool(value)
