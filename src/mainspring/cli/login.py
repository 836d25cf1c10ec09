"""`mainspring login`: Log in to a server.

`mainspring logout`: End the session at a server, and forget the server.
`mainspring profiles`: List and select the servers you have logged in to.
"""

import os
import re
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

import typer

from mainspring.cli.columns import Columns
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.output import AsJson, Format, Out, OutputFormat, errors
from mainspring.cli.profiles import LOCAL, Profile, load_profiles
from mainspring.client import Client
from mainspring.client.requests import unreachable
from mainspring.domain.access.tokens import is_token
from mainspring.domain.errors import InvalidOption, SettingsError
from mainspring.domain.errors.access import Unauthenticated
from mainspring.domain.errors.client import ApiError, ServerUnreachable
from mainspring.settings.rules import is_loopback

app = typer.Typer()
profiles = typer.Typer(
    help="List and select the servers you have logged in to.", no_args_is_help=True
)
app.add_typer(profiles, name="profiles")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@app.command(
    epilog=example(
        "mainspring login https://jobs.example.com --name production",
        "mainspring login 'http://127.0.0.1:8080/login?code=...'",
    )
)
def login(
    server: Annotated[
        str,
        typer.Argument(help="Server address or login link; https unless it says http or is local."),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", "--profile", help="Name of the profile; the server's host name by default."
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Default tenant to act on (operators only).")
    ] = None,
    output_format: OutputFormat = Format.TABLE,
    as_json: AsJson = False,
) -> None:
    """Log in to a server.

    Prompts for a token, or reads it from standard input; a login link needs
    none. Later commands use this server.
    """
    out = Out.chosen(output_format, as_json=as_json)
    address = _address(server)
    known_as = _profile_name(name or urlsplit(address).hostname or "")
    code = parse_qs(urlsplit(server).query).get("code")
    token = _session(address, code[0]) if code else _ask_token()
    with Client(address, token, tenant=tenant) as client:
        me = client.me()
    load_profiles().put(Profile(known_as, address, token, tenant), is_current=True)
    where = f" in {me.tenant}" if me.tenant else ""
    facts = {"profile": known_as, "server": address, "name": me.actor, "role": me.role}
    out.say(facts, f"logged in to {address} as {me.actor}, {me.role}{where} (profile {known_as})")


@app.command(epilog=example("mainspring logout production"))
def logout(
    name: Annotated[
        str | None, typer.Argument(help="Name of the profile; the current one by default.")
    ] = None,
) -> None:
    """End the session at a server, and forget the server.

    A token that you logged in with is forgotten, but stays valid until it is
    revoked.
    """
    known = load_profiles()
    chosen = name or known.current
    if chosen is None:
        raise InvalidOption("logout", "needs a profile; you are not logged in to any server")
    removed = known.remove(chosen)
    Out(Format.TABLE).say(None, f"{_end_session(removed)} {removed.server} (profile {chosen})")


def _end_session(profile: Profile) -> str:
    """What became of it; warns if the server could not be asked."""
    try:
        with Client(profile.server, profile.token) as client:
            client.sessions.log_out()
    except ApiError as error:
        # A token is no session, and a session that has ended lets nobody in.
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED):
            errors.print(f"warning: the session may still be valid: {error}")
        return "forgot"
    except ServerUnreachable as error:
        errors.print(f"warning: the session may still be valid: {error}")
        return "forgot"
    return "logged out of"


@profiles.command("list", epilog=example("mainspring profiles list"))
def list_profiles(output_format: OutputFormat = Format.TABLE, as_json: AsJson = False) -> None:
    """List the servers you have logged in to; the marked one is the default."""
    known = load_profiles()
    chosen = known.chosen(None)
    out = Out.chosen(output_format, as_json=as_json)
    live = [profile for profile in known.known.values() if profile.is_live]
    if out.is_for_people:
        rows = [(profile, profile == chosen) for profile in live]
        out.rows(rows, PROFILES, nothing="No profiles; log in with `mainspring login`.")
        return
    facts = [
        {"name": each.name, "server": each.server, "tenant": each.tenant, "is_used": each == chosen}
        for each in live
    ]
    out.show(facts, lambda _: None)


@profiles.command("use", epilog=example("mainspring profiles use production"))
def use_profile(name: Annotated[str, typer.Argument(help="Name of the profile.")]) -> None:
    """Make this server the default."""
    profile = load_profiles().use(name)
    Out(Format.TABLE).say(None, f"commands now go to {profile.server}")


def _address(server: str) -> str:
    """The server without what a login link has beyond it. Encrypted, unless it is this machine or
    the scheme says otherwise."""
    parts = urlsplit(server if "://" in server else f"https://{server}")
    if "://" not in server and is_loopback(parts.hostname or ""):
        parts = parts._replace(scheme="http")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidOption("server", f"must be like https://jobs.example.com, not {server!r}")
    path = parts.path.rstrip("/").removesuffix("/login")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _profile_name(name: str) -> str:
    if name == LOCAL:
        raise InvalidOption(
            "--name", f"{LOCAL} is reserved for `mainspring up`; choose another name"
        )
    if not _NAME.fullmatch(name):
        raise InvalidOption(
            "--name", "may contain only letters, digits, dots, dashes and underscores"
        )
    return name


def _ask_token() -> str:
    if sys.stdin.isatty():
        text: str = typer.prompt("Token", hide_input=True)
    else:
        text = sys.stdin.readline()
    if not text.strip():
        raise InvalidOption("login", "needs a token; create one with `mainspring tokens create`")
    token = text.strip()
    if not is_token(token):
        raise InvalidOption(
            "login",
            "needs a token, which begins with msk_ and has 56 characters; what was given has "
            f"{len(token)}. Create one with `mainspring tokens create`, or pass a login link",
        )
    return token


def _session(address: str, code: str) -> str:
    """Trade a login link for a session, as a browser does."""
    import httpx

    origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    try:
        answer = httpx.post(f"{address}/login", data={"code": code}, headers={"Origin": origin})
    except httpx.HTTPError as error:
        raise unreachable(address, error) from error
    token = answer.cookies.get("mainspring_session")
    if token is None:
        raise Unauthenticated(
            "the login link is unknown, was used before, or is too old; ask for another"
        )
    return token


def keep_local(server: str, token: str) -> str | None:
    """Leave the profile of a `mainspring up` that runs; the options by which commands use it, none
    at all unless someone has logged in elsewhere, and None where it could not be left."""
    try:
        known = load_profiles()
        known.put(Profile(LOCAL, server, token, pid=os.getpid()), is_current=False)
    except SettingsError as error:
        errors.print(f"warning: {error}; pass --server to commands")
        return None
    chosen = known.chosen(None)
    return "" if chosen is not None and chosen.name == LOCAL else f" --profile {LOCAL}"


def abandoned_token() -> str | None:
    """What an earlier `mainspring up` has left behind that could not take it away."""
    with suppress(SettingsError):
        left = load_profiles().known.get(LOCAL)
        return None if left is None or left.is_live else left.token
    return None


def forget_local() -> None:
    """Remove what we left, unless another `mainspring up` has put its own there."""
    with suppress(SettingsError):  # Who dies with it has nobody to tell; it says it is not live.
        known = load_profiles()
        left = known.known.get(LOCAL)
        if left is not None and left.pid == os.getpid():
            known.remove(LOCAL)


def _cells(known: tuple[Profile, bool]) -> list[Cell]:
    profile, is_used = known
    return [profile.name, "yes" if is_used else "", profile.server, profile.tenant]


PROFILES = Listing(
    Columns(names=("NAME", "DEFAULT", "SERVER", "TENANT"), dropped=("TENANT",)), _cells
)
