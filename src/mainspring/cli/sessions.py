"""`mainspring sessions`: List and end the sessions of people who are logged in."""

from typing import Annotated

import typer

from mainspring.api.models.sessions import SessionModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, first
from mainspring.cli.output import Out
from mainspring.client import Client
from mainspring.client.requests import given
from mainspring.domain.errors import InvalidOption

app = typer.Typer()
sessions = typer.Typer(
    help="List and end the sessions of people who are logged in.", no_args_is_help=True
)
app.add_typer(sessions, name="sessions")


@sessions.command("list", epilog=example("mainspring sessions list --person ann"))
@connected
def list_sessions(
    client: Client,
    out: Out,
    person: Annotated[
        list[str] | None, typer.Option(help="Only sessions of this person; repeatable.")
    ] = None,
    limit: Limit = 100,
) -> None:
    """List sessions, newest first: your own, or those of the people you may manage."""
    found = client.sessions.list(**given(person=person), limit=min(limit, PAGE))
    out.rows(first(found, limit), SESSIONS, nothing="No sessions.")


@sessions.command(
    "end", epilog=example("mainspring sessions end 7", "mainspring sessions end --person ann")
)
@connected
def end_session(
    client: Client,
    out: Out,
    session_id: Annotated[
        int | None, typer.Argument(min=1, help="Id of the session, as in the list.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="End all sessions of this person instead.")
    ] = None,
) -> None:
    """End a session, or all sessions of a person, effective with the next request."""
    if (session_id is None) == (person is None):
        raise InvalidOption("end", "needs the id of a session, or --person")
    if person is not None:
        count = client.people.end_sessions(person)
        out.say({"person": person, "ended": count}, f"{person} is logged out: {count} ended.")
    elif session_id is not None:
        client.sessions.end(session_id)
        out.say({"id": str(session_id), "ended": 1}, f"Session {session_id} is ended.")


def _cells(session: SessionModel) -> list[Cell]:
    return [
        str(session.id),
        session.person,
        session.tenant or "*",
        session.last_used_at or "never",
        session.expires_at,
        session.created_by,
        "this session" if session.is_current else "",
    ]


SESSIONS = Listing(
    Columns(
        names=("ID", "PERSON", "TENANT", "LAST USED", "EXPIRES", "LINK BY", "NOTE"),
        dropped=("LINK BY", "EXPIRES", "TENANT", "LAST USED"),
        text=("NOTE",),
    ),
    _cells,
)
