"""`mainspring login-link`: Print a one-time login link, valid for 15 minutes.

`mainspring people`: Manage the people who may log in.
`mainspring tokens`: Manage API tokens.
"""

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mainspring.api.models.people import PersonModel
from mainspring.api.models.tokens import CreatedTokenModel, TokenModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, several
from mainspring.cli.options import PAGE, Limit, Sure, first
from mainspring.cli.output import Out, confirm, errors, say
from mainspring.client import Client
from mainspring.client.requests import given
from mainspring.domain.access.roles import EVERY_TENANT, ensure_role
from mainspring.domain.access.tokens import LONGEST_LIFE, TokenState
from mainspring.domain.errors import InvalidOption

app = typer.Typer()
tokens = typer.Typer(help="Manage API tokens.", no_args_is_help=True)
people = typer.Typer(help="Manage the people who may log in.", no_args_is_help=True)
app.add_typer(tokens, name="tokens")
app.add_typer(people, name="people")

Name = Annotated[str, typer.Argument(help="Name.")]
After = Annotated[str | None, typer.Option(help="Only names after this one.")]

_STATE_STYLES = {
    TokenState.ACTIVE: "green",
    TokenState.EXPIRED: "yellow",
    TokenState.REVOKED: "red",
}


@tokens.command("list", epilog=example("mainspring tokens list --all"))
@connected
def list_tokens(
    client: Client,
    out: Out,
    ended: Annotated[
        bool, typer.Option("--all", help="Include expired and revoked tokens.")
    ] = False,
    after: After = None,
    limit: Limit = 100,
) -> None:
    """List tokens by name. Token values are not stored."""
    found = client.tokens.list(
        state=list(TokenState) if ended else None, after=after, limit=min(limit, PAGE)
    )
    nothing = "No tokens; create one with `mainspring tokens create`."
    out.rows(first(found, limit), TOKENS, nothing=nothing)


@tokens.command(
    "create",
    epilog=example(
        "mainspring tokens create ci --role member --tenant acme --days 90",
        "mainspring tokens create graphs --role viewer --scope jobs:read",
        "mainspring tokens create node --role worker --all-tenants",
    ),
)
@connected
def create_token(
    client: Client,
    out: Out,
    name: Name,
    role: Annotated[str, typer.Option(help="Role: operator, admin, member, viewer or worker.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="Scope, e.g. jobs:read; repeatable. All by default.")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="Lifetime in days; unlimited by default.")
    ] = None,
    tenants: Annotated[
        str | None,
        typer.Option(help="Tenants that a worker serves in place of --tenant, e.g. acme,bell."),
    ] = None,
    all_tenants: Annotated[
        bool, typer.Option("--all-tenants", help="Let a worker serve all tenants.")
    ] = False,
) -> None:
    """Create a token. Its value is printed once and cannot be shown again."""
    life = None if days is None else _life(days)
    served = _served(tenants, is_all=all_tenants)
    made = client.tokens.create(
        name, ensure_role(role), scopes=scope, expires_in=life, tenants=served
    )
    out.show(made, _print_new)


@tokens.command("revoke", epilog=example("mainspring tokens revoke ci"))
@connected
def revoke_token(client: Client, out: Out, name: Name) -> None:
    """Revoke a token, effective with the next request."""
    token = client.tokens.revoke(name)
    out.say(token, f"Token {token.name} is revoked.")


@people.command("list", epilog=example("mainspring people list"))
@connected
def list_people(client: Client, out: Out, after: After = None, limit: Limit = 100) -> None:
    """List people by name."""
    found = client.people.list(after=after, limit=min(limit, PAGE))
    nothing = "No people; the first start of a server creates an operator."
    out.rows(first(found, limit), PEOPLE, nothing=nothing)


@people.command("create", epilog=example("mainspring people create ann --role admin --tenant acme"))
@connected
def create_person(
    client: Client,
    out: Out,
    name: Name,
    role: Annotated[str, typer.Option(help="Role: operator, admin, member or viewer.")],
) -> None:
    """Add a person who may log in."""
    _print_person(out, client.people.create(name, _role_of_person(role)), "may log in")


@people.command("change", epilog=example("mainspring people change ann --disable"))
@connected
def change_person(
    client: Client,
    out: Out,
    name: Name,
    role: Annotated[str | None, typer.Option(help="New role in the same tenant.")] = None,
    disabled: Annotated[
        bool | None,
        typer.Option("--disable/--enable", help="Disable or enable the person's access."),
    ] = None,
) -> None:
    """Change a person's role, or disable their access."""
    if role is None and disabled is None:
        raise InvalidOption("change", "needs an option that changes something; see --help")
    chosen = None if role is None else _role_of_person(role)
    changed = client.people.change(
        name, **given(role=chosen, is_enabled=None if disabled is None else not disabled)
    )
    _print_person(out, changed, "is changed")


@people.command("delete", epilog=example("mainspring people delete ann --yes"))
@connected
def delete_person(client: Client, out: Out, name: Name, is_sure: Sure = False) -> None:
    """Delete a person with their sessions and the tokens they created."""
    client.people.get(name)
    confirm(f"Delete {name} with their sessions and the tokens they created?", is_sure=is_sure)
    client.people.delete(name)
    out.say({"name": name, "deleted": True}, f"{name} is deleted.")


@app.command(
    epilog=example(
        "mainspring login-link ann", "mainspring login-link ann --url https://jobs.example.com"
    ),
)
@connected
def login_link(
    client: Client,
    out: Out,
    name: Annotated[str, typer.Argument(help="Person to log in as.")] = "operator",
    url: Annotated[
        str | None, typer.Option(help="Address of the server for a browser, if it differs.")
    ] = None,
) -> None:
    """Print a one-time login link, valid for 15 minutes."""
    base = None if url is None else _base(url)
    made = client.people.open_login(name)
    link = made.url if base is None else f"{base}/login?{urlsplit(made.url).query}"
    out.say({"url": link}, link)


def _base(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidOption("--url", f"must be like https://jobs.example.com, not {url!r}")
    return url.rstrip("/")


def _role_of_person(role: str) -> str:
    known = ensure_role(role)
    if known == "worker":
        raise InvalidOption("role", "cannot be worker for a person; make a token for a worker")
    return known


def _life(days: float) -> timedelta:
    if not 0 < days <= LONGEST_LIFE.days:
        raise InvalidOption("--days", f"must be more than 0 and at most {LONGEST_LIFE.days}")
    return timedelta(days=days)


def _served(tenants: str | None, *, is_all: bool) -> list[str] | None:
    if tenants is not None and is_all:
        raise InvalidOption("--tenants", "and --all-tenants exclude each other; pass one of them")
    if is_all:
        return [EVERY_TENANT]
    return None if tenants is None else [each.strip() for each in tenants.split(",")]


def _where(tenant: str | None, tenants: list[str] | None = None) -> str:
    if tenants and tenants != [EVERY_TENANT]:
        return f" in {', '.join(tenants)}"
    return f" in {tenant}" if tenant else " in all tenants"


def _print_new(made: CreatedTokenModel) -> None:
    say(made.token)
    token = made.details
    kept = f"Store it now: it is not shown again. {token.name} is {token.role}"
    errors.print(f"{kept}{_where(token.tenant, token.tenants)}.")


def _print_person(out: Out, person: PersonModel, what: str) -> None:
    out.say(person, f"{person.name} {what}: {person.role}{_where(person.tenant)}.")


def _token_cells(token: TokenModel) -> list[Cell]:
    return [
        token.name,
        token.role,
        token.tenant or several(token.tenants or [EVERY_TENANT]),
        Text(token.state, style=_STATE_STYLES[token.state]),
        token.prefix,
        several(token.scopes) if token.scopes else "all",
        token.last_used_at or "never",
        token.expires_at or "never",
    ]


def _person_cells(person: PersonModel) -> list[Cell]:
    return [
        person.name,
        person.role,
        person.tenant or "*",
        Text("disabled", style="red") if not person.is_enabled else Text("active", style="green"),
        person.last_seen_at or "never",
    ]


TOKENS = Listing(
    Columns(
        names=("NAME", "ROLE", "TENANT", "STATE", "BEGINS", "SCOPES", "LAST USED", "EXPIRES"),
        dropped=("BEGINS", "SCOPES", "LAST USED", "TENANT", "EXPIRES"),
    ),
    _token_cells,
)
PEOPLE = Listing(
    Columns(
        names=("NAME", "ROLE", "TENANT", "STATE", "LAST SEEN"), dropped=("LAST SEEN", "TENANT")
    ),
    _person_cells,
)
