"""`mainspring tokens ...`, `mainspring people ...` and `mainspring login-link`: who may come in."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings, run
from mainspring.domain.errors import InvalidOption
from mainspring.domain.tokens import Person, Token, TokenState

tokens = typer.Typer(help="See and steer what lets programs in.", no_args_is_help=True)
people = typer.Typer(help="See and steer who may log in.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Its name.")]
Role = Annotated[str, typer.Option(help="operator, admin, member, viewer or worker.")]
Tenant = Annotated[str | None, typer.Option(help="Whose; not for an operator.")]
After = Annotated[str | None, typer.Option(help="Only names after this one.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")]

_STATE_STYLES = {
    TokenState.ACTIVE: "green",
    TokenState.EXPIRED: "yellow",
    TokenState.REVOKED: "red",
}


@tokens.command("list")
def list_tokens(
    ended: Annotated[bool, typer.Option("--all", help="Those that have ended, too.")] = False,
    after: After = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Tokens by name; their texts are not kept."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.tokens.alist(after=after, limit=limit, with_ended=ended))
    if as_json:
        output.print_json([asdict(token) for token in found])
    elif found:
        output.console.print(_token_table(found))
    else:
        output.console.print("No tokens; make one with `mainspring tokens create`.")


@tokens.command("create")
def create_token(
    name: Name,
    role: Role,
    tenant: Tenant = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="Such as jobs:read; may be repeated. All without.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="How long it lasts; for ever without.")] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Make a token. Its text is printed once, and cannot be shown again."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    life = None if days is None else _life(days)
    new = run(
        app,
        app.tokens.acreate(
            name, role, tenant_id=_tenant(role, tenant), scopes=scope, expires_in=life
        ),
    )
    if as_json:
        output.print_json({"token": new.text, "details": asdict(new.token)})
        return
    output.console.print(new.text, highlight=False, soft_wrap=True)
    output.errors.print(
        f"Keep it: this is the only time it is shown. {new.token.name} is {new.token.role}"
        f"{f' in {new.token.tenant_id}' if new.token.tenant_id else ''}.",
        highlight=False,
    )


@tokens.command("revoke")
def revoke_token(
    name: Name, as_json: AsJson = False, database_url: DatabaseUrl = None, data_dir: DataDir = None
) -> None:
    """Let nobody in by it, from the next request on."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    token = run(app, app.tokens.arevoke(name))
    if as_json:
        output.print_json(asdict(token))
    else:
        output.console.print(f"Token {token.name} is revoked.", highlight=False)


@people.command("list")
def list_people(
    after: After = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Who may log in, by name."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.people.alist(after=after, limit=limit))
    if as_json:
        output.print_json([asdict(person) for person in found])
    elif found:
        output.console.print(_person_table(found))
    else:
        output.console.print("Nobody; the first start of a server makes an operator.")


@people.command("create")
def create_person(
    name: Name,
    role: Role,
    tenant: Tenant = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Add someone who may log in."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    person = run(app, app.people.acreate(name, role, tenant_id=_tenant(role, tenant)))
    _tell_person(person, "may log in", as_json=as_json)


@people.command("change")
def change_person(
    name: Name,
    role: Annotated[str | None, typer.Option(help="Another role in the same tenant.")] = None,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Keep the person out, or not.")
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Give a person another role, or keep it out."""
    if role is None and disabled is None:
        raise InvalidOption("change", "has nothing to change; give an option, see --help")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    person = run(app, app.people.achange(name, role=role, is_disabled=disabled))
    _tell_person(person, "is changed", as_json=as_json)


@people.command("delete")
def delete_person(name: Name, database_url: DatabaseUrl = None, data_dir: DataDir = None) -> None:
    """Remove a person with its tokens and sessions."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    run(app, app.people.adelete(name))
    output.console.print(f"{name} is gone.", highlight=False)


def login_link(
    name: Annotated[str, typer.Argument(help="Who is to log in.")] = "operator",
    server: Annotated[
        str | None,
        typer.Option(help="Where the server is.", show_default="public_url, or this machine"),
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Print a link with which a person logs in, once and within a quarter of an hour."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    code = run(app, app.people.aopen_login(name))
    base = server or app.settings.public_url or "http://127.0.0.1:8080"
    link = f"{base.rstrip('/')}/login?code={code}"
    output.console.print(link, highlight=False, soft_wrap=True)


def _tenant(role: str, tenant: str | None) -> str | None:
    return "default" if tenant is None and role != "operator" else tenant


def _life(days: float) -> timedelta:
    try:
        return timedelta(days=days)
    except OverflowError:
        raise InvalidOption("days", "must be at most 3660") from None


def _tell_person(person: Person, what: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(person))
        return
    where = f" in {person.tenant_id}" if person.tenant_id else ""
    output.console.print(f"{person.name} {what}: {person.role}{where}.", highlight=False)


def _token_table(found: list[Token]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NAME", "ROLE", "TENANT", "STATE", "BEGINS", "SCOPES", "LAST USED", "EXPIRES"):
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for token in found:
        table.add_row(
            token.name,
            token.role,
            token.tenant_id or "*",
            Text(token.state, style=_STATE_STYLES[token.state]),
            token.prefix,
            ", ".join(token.scopes) if token.scopes else "all",
            output.ago(token.last_used_at) if token.last_used_at else "never",
            f"{token.expires_at:%Y-%m-%d}" if token.expires_at else "never",
        )
    return table


def _person_table(found: list[Person]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NAME", "ROLE", "TENANT", "STATE", "LAST SEEN"):
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for person in found:
        table.add_row(
            person.name,
            person.role,
            person.tenant_id or "*",
            Text("disabled", style="red") if person.is_disabled else Text("active", style="green"),
            output.ago(person.last_seen_at) if person.last_seen_at else "never",
        )
    return table
