"""How a command connects: through a client of the server or database that is found first.

1. the database of `--database-url` or `--data-dir`, without a server
2. the server of `--server`, with the token in MAINSPRING_TOKEN
3. the profile of `--profile`
4. the same from the environment and mainspring.toml: the server, the profile, the database
5. the current profile, or the one of a `mainspring up` that runs or is starting
6. the embedded database in its default place
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from mainspring.cli import last_up
from mainspring.cli.errors import in_options
from mainspring.cli.options import DatabaseUrl, DataDir, make_settings
from mainspring.cli.output import AsJson, Format, Out, OutputFormat
from mainspring.cli.profiles import Profile, load_profiles
from mainspring.client import Client
from mainspring.domain.errors import SettingsError
from mainspring.domain.errors.client import ApiError
from mainspring.settings import file

Server = Annotated[
    str | None, typer.Option(help="Server address; the token is read from MAINSPRING_TOKEN.")
]
ProfileName = Annotated[str | None, typer.Option(help="Profile of a server you have logged in to.")]
Tenant = Annotated[str | None, typer.Option(help="Tenant to act on (operators only).")]


@dataclass(frozen=True, slots=True)
class Target:
    """The server or database that the options of a command name."""

    server: str | None = None
    profile: str | None = None
    tenant: str | None = None
    database_url: str | None = None
    data_dir: Path | None = None

    @property
    def names_database(self) -> bool:
        return self.database_url is not None or self.data_dir is not None

    def with_environment(self) -> "Target":
        """The same, and what the environment says where nothing else does."""
        if self.names_database or self.server is not None or self.profile is not None:
            return self
        return Target(
            os.environ.get("MAINSPRING_SERVER") or None,
            os.environ.get("MAINSPRING_PROFILE") or None,
            self.tenant,
        )


@contextmanager
def connect(target: Target) -> Iterator[Client]:
    """A client of the server or database that was named."""
    # Looking for plugins in all installed packages takes longer than a request; no code of yours
    # runs in a command that has a client.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    tenant = target.tenant or os.environ.get("MAINSPRING_TENANT") or None
    profile = _profile(target.with_environment())
    if profile is None and _is_default(target) and last_up.await_start():
        profile = _profile(target.with_environment())
    if profile is None:
        with _direct(target, tenant) as client:
            yield client
        return
    with Client(profile.server, profile.token, tenant=tenant or profile.tenant) as client:
        yield client


def _profile(target: Target) -> Profile | None:
    """The server to use; None for a database without a server."""
    if target.names_database:
        return None
    if target.server is not None:
        token = os.environ.get("MAINSPRING_TOKEN")
        if not token:
            raise SettingsError(
                f"no token for {target.server}; set MAINSPRING_TOKEN, or log in with "
                f"`mainspring login {target.server}`"
            )
        return Profile("", target.server, token)
    if target.profile is None and _is_database_set():
        return None
    return load_profiles().chosen(target.profile)


def _is_default(target: Target) -> bool:
    """Whether nothing says which database to use."""
    return not target.names_database and not _setting("database_url") and not _setting("data_dir")


def _is_database_set() -> bool:
    """Whether the environment or the settings file names a database, other than the one of a
    `mainspring up` that runs, whose server is used then."""
    if _setting("database_url"):
        return True
    data_dir = _setting("data_dir")
    return bool(data_dir) and not last_up.is_used_by_running(Path(data_dir))


def _setting(name: str) -> str:
    """What the environment says, or else the settings file; empty where neither does."""
    variables = {name.upper(): value for name, value in os.environ.items()}
    variable = f"MAINSPRING_{name.upper()}"
    if variable in variables:
        return variables[variable]
    return str(file.read().values.get(name) or "")


@contextmanager
def _direct(target: Target, tenant: str | None) -> Iterator[Client]:
    from mainspring.client.direct_transport import DirectTransport
    from mainspring.db.database import Database

    database = Database(make_settings(target.database_url, target.data_dir))
    try:
        with DirectTransport(database) as transport:
            last_up.say_which(database)
            yield Client("", transport.token, tenant=tenant, transport=transport)
    finally:
        database.close()


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_TARGET = {
    "server": Server,
    "profile": ProfileName,
    "tenant": Tenant,
    "database_url": DatabaseUrl,
    "data_dir": DataDir,
}
_SHARED = [
    _parameter("output_format", OutputFormat, Format.TABLE),
    _parameter("as_json", AsJson, default=False),
    *(_parameter(name, annotation) for name, annotation in _TARGET.items()),
]


def connected(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command its `client`, its way to print as `out`, and the options that choose them."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("client", "out")
    ]
    parameters = [*own, *_SHARED]

    @wraps(function)
    def command(**given: Any) -> None:
        target = Target(**{name: given.pop(name) for name in _TARGET})
        out = Out.chosen(given.pop("output_format"), as_json=given.pop("as_json"))
        try:
            with connect(target) as client:
                function(client=client, out=out, **given)
        except ApiError as error:
            raise in_options(error, parameters) from error

    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command
