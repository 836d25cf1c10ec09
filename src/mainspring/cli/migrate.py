"""`mainspring migrate`: Upgrade the database schema to this version."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from mainspring.cli import output
from mainspring.cli.examples import example
from mainspring.cli.last_up import say_which
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings
from mainspring.db import connect, schema_locks
from mainspring.db import migrate as migrations
from mainspring.db.database import Database
from mainspring.domain.errors.database import SchemaMissing

if TYPE_CHECKING:
    from mainspring.settings import Settings

app = typer.Typer()


@app.command(epilog=example("mainspring migrate", "mainspring migrate --check"))
def migrate(
    is_check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit 1 if an upgrade is pending.")
    ] = False,
    tries: Annotated[
        int, typer.Option(min=1, help="How often to try for locks that others hold.")
    ] = schema_locks.TRIES,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Upgrade the database schema to this version."""
    with _found(make_settings(database_url, data_dir)) as url:
        if is_check:
            _check(url, as_json=as_json)
        else:
            report = partial(output.errors.print, markup=False, highlight=False)
            upgrade = migrations.upgrade(url, tries=tries, report=report)
            _print_applied(asyncio.run(upgrade), as_json=as_json)


@contextmanager
def _found(settings: "Settings") -> Iterator[str]:
    """The database as it is: whoever else opens the embedded one upgrades it at once."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from mainspring.db import embedded

    with embedded.running(settings.data_dir) as server:
        say_which(Database(settings))
        yield server.url


def _check(url: str, *, as_json: bool) -> None:
    try:
        _print_pending(asyncio.run(_pending(url)), as_json=as_json)
    except SchemaMissing as error:
        output.errors.print(Text(str(error)))
        raise typer.Exit(1) from None


async def _pending(url: str) -> migrations.Changes:
    connection = await connect.connect(url, name="mainspring migrate")
    async with connection:
        if await migrations.current(connection) is None:
            raise SchemaMissing
        return await migrations.pending(connection)


def _print_pending(changes: migrations.Changes, *, as_json: bool) -> None:
    if as_json:
        output.print_json(
            {"pending": [*map(str, changes.migrations)], "functions": changes.has_functions}
        )
    elif not changes:
        output.console.print(f"up to date, at migration {migrations.newest()}", highlight=False)
    else:
        said = f"pending: {_words(changes)}; run `mainspring migrate`"
        output.errors.print(said, markup=False, highlight=False)
    if changes:
        raise typer.Exit(1)


def _print_applied(changes: migrations.Changes, *, as_json: bool) -> None:
    if as_json:
        names = [*map(str, changes.migrations)]
        facts = {"applied": names, "functions": changes.has_functions, "at": migrations.newest()}
        output.print_json(facts)
        return
    done = f"applied {_words(changes)}" if changes else "nothing to do"
    output.console.print(f"{done}; at migration {migrations.newest()}", highlight=False)


def _words(changes: migrations.Changes) -> str:
    names = [f"migration {migration}" for migration in changes.migrations]
    return ", ".join([*names, *(["functions and views"] if changes.has_functions else [])])
