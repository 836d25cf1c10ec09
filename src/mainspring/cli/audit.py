"""`mainspring audit`: Show the audit log."""

from collections.abc import Iterator
from typing import Annotated

import orjson
import typer

from mainspring.api.models.audit import AuditModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, first
from mainspring.cli.output import Out
from mainspring.client import Client

app = typer.Typer()
audit = typer.Typer(help="Show the audit log.", no_args_is_help=True)
app.add_typer(audit, name="audit")


@audit.command(
    "list",
    epilog=example(
        "mainspring audit list --noun schedule --subject nightly",
        "mainspring audit list --actor ann",
    ),
)
@connected
def list_audit(
    client: Client,
    out: Out,
    actor: Annotated[
        list[str] | None,
        typer.Option(
            help="Only changes by this user or token, a name or an id: person:7; repeatable."
        ),
    ] = None,
    action: Annotated[
        list[str] | None, typer.Option(help="Only changes of this kind, e.g. cancel; repeatable.")
    ] = None,
    noun: Annotated[
        list[str] | None,
        typer.Option(help="Only changes to this kind of thing, e.g. schedule; repeatable."),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(help="Only changes to the thing with this name or id; repeatable."),
    ] = None,
    limit: Limit = 20,
) -> None:
    """List changes, newest first. An operator who names no tenant sees all tenants."""
    found = client.audit(
        actor=actor, action=action, noun=noun, subject=subject, limit=min(limit, PAGE)
    )
    out.rows(first(found, limit), AUDIT, nothing="No changes.")


def _change(entry: AuditModel) -> str:
    reason = f"({entry.reason}) " if entry.reason else ""
    return reason + ", ".join(_parts(entry))


def _parts(entry: AuditModel) -> Iterator[str]:
    before, after = entry.before or {}, entry.after or {}
    for name in dict.fromkeys((*before, *after)):
        was, is_now = before.get(name), after.get(name)
        if before and after:
            yield f"{name} {_shown(was)} -> {_shown(is_now)}"
        elif was is not None or is_now is not None:
            yield f"{name} {_shown(is_now if was is None else was)}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _cells(entry: AuditModel) -> list[Cell]:
    return [
        entry.at,
        f"{entry.actor} ({entry.actor_id})" if entry.actor_id else entry.actor,
        entry.action,
        f"{entry.noun} {entry.subject}",
        entry.tenant or "",
        _change(entry),
    ]


AUDIT = Listing(
    Columns(
        names=("WHEN", "WHO", "DID", "TO", "TENANT", "CHANGE"),
        dropped=("TENANT",),
        text=("CHANGE",),
        varied=("TENANT",),
    ),
    _cells,
)
