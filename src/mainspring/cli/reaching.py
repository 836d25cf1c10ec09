"""How a command reaches Mainspring: through the client, whose server is found in this order.

1. the database of `--database-url` or `--data-dir`: the API runs inside the command, for it alone
2. the server of `--server`, with the token in MAINSPRING_TOKEN
3. the profile of `--profile`
4. the same from the environment and mainspring.toml: the server, the profile, the database
5. the profile that was logged in to, or the one that a running `mainspring up` has left
6. the embedded database
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from mainspring import __version__
from mainspring.cli.options import DatabaseUrl, DataDir, make_settings
from mainspring.cli.output import AsJson, Format, Out, OutputFormat
from mainspring.cli.profiles import load_profiles
from mainspring.cli.refusals import in_options
from mainspring.client import Client
from mainspring.db.database import Database
from mainspring.domain.errors import SettingsError
from mainspring.domain.errors.client import ApiError

Server = Annotated[
    str | None, typer.Option(help="Address of a server; the token is in MAINSPRING_TOKEN.")
]
ProfileName = Annotated[str | None, typer.Option(help="A server you have logged in to, by name.")]
Tenant = Annotated[str | None, typer.Option(help="Whose; for operators, who see all tenants.")]


@dataclass(frozen=True, slots=True)
class Where:
    """What a command was told of where to go."""

    server: str | None = None
    profile: str | None = None
    tenant: str | None = None
    database_url: str | None = None
    data_dir: Path | None = None

    @property
    def names_database(self) -> bool:
        return self.database_url is not None or self.data_dir is not None

    def with_environment(self) -> "Where":
        """The same, and what the environment says where nothing else does."""
        if self.names_database or self.server is not None or self.profile is not None:
            return self
        return Where(
            os.environ.get("MAINSPRING_SERVER") or None,
            os.environ.get("MAINSPRING_PROFILE") or None,
            self.tenant,
        )


@contextmanager
def reach(where: Where) -> Iterator[Client]:
    """The client of the server that was asked for."""
    tenant = where.tenant or os.environ.get("MAINSPRING_TENANT") or None
    with ExitStack() as opened:
        url, token, own_tenant = _find(where.with_environment(), opened)
        yield opened.enter_context(Client(url, token, tenant=tenant or own_tenant))


def _find(where: Where, opened: ExitStack) -> tuple[str, str, str | None]:
    """Address, token, and the tenant that goes with them."""
    if where.names_database:
        return _indoors(where, opened)
    if where.server is not None:
        token = os.environ.get("MAINSPRING_TOKEN")
        if not token:
            raise SettingsError(
                f"no token for {where.server}; put one into MAINSPRING_TOKEN, or log in once with "
                f"`mainspring login {where.server}`"
            )
        return where.server, token, None
    if where.profile is None and make_settings(None, None).database_url is not None:
        return _indoors(where, opened)
    profile = load_profiles().chosen(where.profile)
    if profile is None:
        return _indoors(where, opened)
    return profile.server, profile.token, profile.tenant


def _indoors(where: Where, opened: ExitStack) -> tuple[str, str, None]:
    from mainspring.app.server import InProcessServer

    database = Database(make_settings(where.database_url, where.data_dir))
    opened.callback(database.close)
    inside = opened.enter_context(InProcessServer(database, version=__version__))
    return inside.url, inside.token, None


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_WHERE = {
    "server": Server,
    "profile": ProfileName,
    "tenant": Tenant,
    "database_url": DatabaseUrl,
    "data_dir": DataDir,
}
_SHARED = [
    _parameter("output_format", OutputFormat, Format.TABLE),
    _parameter("as_json", AsJson, default=False),
    *(_parameter(name, annotation) for name, annotation in _WHERE.items()),
]


def reaching(function: Callable[..., None]) -> Callable[..., None]:
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
        where = Where(**{name: given.pop(name) for name in _WHERE})
        out = Out.chosen(given.pop("output_format"), as_json=given.pop("as_json"))
        try:
            with reach(where) as client:
                function(client=client, out=out, **given)
        except ApiError as error:
            raise in_options(error, parameters) from error

    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def example(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\n\n".join(("Examples:" if len(lines) > 1 else "Example:", *lines))
