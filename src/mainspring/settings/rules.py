"""Settings: where each comes from, what was meant by one that does not exist, what is doubtful.

flags ─▶ environment ─▶ file ─▶ defaults      the first that has a setting wins
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from mainspring.domain.errors import SettingsError
from mainspring.domain.suggestions import did_you_mean

PREFIX = "MAINSPRING_"
DEFAULT_FILE = "mainspring.toml"
# Of the command line, of the pytest plugin, of clients, and what a worker tells its programs.
OTHER_VARIABLES = frozenset(
    PREFIX + name
    for name in (
        *("CONFIG", "PROFILE", "SERVER", "TENANT", "TOKEN", "URL"),
        "TEST_DATABASE_URL",
        *("ATTEMPT", "ATTEMPT_ID", "JOB_ID", "TENANT_ID", "WORKER"),
    )
)

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PLACE = re.compile(r"(?P<problem>.*) \(at (?:(?P<line>line \d+), column \d+|end of document)\)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARTS_OF_A_COLUMN = 3


class Origin(StrEnum):
    """Where a value was set."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


# The first that has a setting wins.
PRECEDENCE = (Origin.FLAG, Origin.ENVIRONMENT, Origin.FILE)


class Level(StrEnum):
    """Whether something is wrong, or only doubtful."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check has to say; `key` is the setting, if it is about one."""

    level: Level
    key: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """A value as it was written, and where."""

    value: Any
    origin: Origin


def error(message: str, key: str | None = None) -> Finding:
    return Finding(Level.ERROR, key, message)


def warning(message: str, key: str | None = None) -> Finding:
    return Finding(Level.WARNING, key, message)


def winners(layers: Mapping[Origin, Mapping[str, Any]]) -> dict[str, Found]:
    """What counts of all that was said."""
    found: dict[str, Found] = {}
    for origin in PRECEDENCE:
        for name, value in layers.get(origin, {}).items():
            found.setdefault(name, Found(value, origin))
    return found


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def read_toml(text: str, file: str) -> dict[str, Any]:
    """The values of a file; raises SettingsError with the line that is wrong."""
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 - slow to import, and often there is no file

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{file} is nested too deeply to be read") from None
    except tomllib.TOMLDecodeError as problem:
        raise SettingsError(f"{file}, {_place(str(problem), text)}") from None
    except ValueError:
        raise SettingsError(f"{file} contains a number that is too long to be read") from None


def _place(problem: str, text: str) -> str:
    found = _PLACE.fullmatch(problem)
    line = (found and found["line"]) or f"line {len(text.splitlines())}"
    return f"{line}: this is not valid TOML: {found['problem'] if found else problem}"


def unknown_keys(values: Mapping[str, Any], known: Collection[str], file: str) -> Iterator[Finding]:
    """What a file says and no setting is called."""
    for key, value in values.items():
        if key not in known:
            yield error(f"{file}: {_unknown_key(key, value, known)}", key)


def _unknown_key(key: str, value: object, known: Collection[str]) -> str:
    if isinstance(value, Mapping):
        return (
            f"{key!r} is a table, but settings are not in tables; write them at the top of the file"
        )
    return f"there is no setting {key!r}{did_you_mean(key.lower(), known)}"


def unknown_variables(names: Iterable[str], known: Collection[str]) -> list[Finding]:
    """Variables that look like a setting and are none."""
    variables = {variable(name) for name in known} | OTHER_VARIABLES
    return [
        warning(f"{name} is not a setting and has no effect{did_you_mean(name.upper(), variables)}")
        for name in sorted(names)
        if name.upper().startswith(PREFIX) and name.upper() not in variables
    ]


def is_loopback(host: str) -> bool:
    return host in _LOOPBACK


def doubts(values: Mapping[str, Any]) -> list[Finding]:
    """What is allowed, and hardly meant."""
    found = [*_doubts_of_the_database(values), *_doubts_of_lists(values)]
    host = values["host"]
    if not is_loopback(host):
        said = (
            f"host {host} can be reached from other machines; `mainspring server` and `up` "
            "require --expose for it, and a TLS proxy should be in front of it"
        )
        found.append(warning(said, "host"))
    if values["max_payload_bytes"] > values["max_request_bytes"]:
        said = (
            f"max_payload_bytes ({values['max_payload_bytes']:,}) is above max_request_bytes "
            f"({values['max_request_bytes']:,}), so the REST API refuses the largest payloads"
        )
        found.append(warning(said, "max_payload_bytes"))
    return found


def _doubts_of_the_database(values: Mapping[str, Any]) -> Iterator[Finding]:
    if values["database_url"] is None:
        if values["use_pooler"]:
            said = "use_pooler is on, but without database_url there is no pooler to use"
            yield warning(said, "use_pooler")
    elif values["data_dir"] is not None:
        yield warning("data_dir is not used, because database_url is set", "data_dir")


def _doubts_of_lists(values: Mapping[str, Any]) -> Iterator[Finding]:
    for name in split(values["command_environment"], ","):
        if not _VARIABLE.fullmatch(name):
            said = f"command_environment: {name!r} is not the name of a variable"
            yield warning(said, "command_environment")
    for column in split(values["prune_tables"], ","):
        if len(column.split(".")) != _PARTS_OF_A_COLUMN:
            said = f"prune_tables: {column!r} is not schema.table.column, so no job can use it"
            yield warning(said, "prune_tables")


def split(text: str, separator: str) -> tuple[str, ...]:
    """The parts that are not empty."""
    parts = (part.strip() for part in text.split(separator))
    return tuple(part for part in parts if part)


def urls_of_roles(text: str) -> dict[str, str]:
    """The URLs by role, of `role=URL` separated by spaces; raises ValueError without the text."""
    found: dict[str, str] = {}
    for number, entry in enumerate(text.split(), start=1):
        role, _, url = entry.partition("=")
        if not role or not url.startswith(("postgresql://", "postgres://")):
            raise ValueError(f"entry {number} must be role=URL, such as reports=postgresql://...")
        if (name := unquote(role)) in found:
            raise ValueError(f"entry {number} names a role that an entry before it names")
        found[name] = url
    return found
