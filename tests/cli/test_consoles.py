"""The console of `mainspring up`: renewed while it runs, and what becomes of one that is gone."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.cli import consoles
from mainspring.cli.consoles import Console
from mainspring.domain.access.tokens import LOCAL_LIFE, digest
from mainspring.services import tokens
from tests.support.waiting import wait_until

AGE = "update mainspring.tokens set expires_at = now() - interval '1 hour' where kind = 'console'"
LEFT = "select extract(epoch from expires_at - now()) from mainspring.tokens where kind = 'console'"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    # In time for a test; what is measured is that it is renewed.
    monkeypatch.setattr(consoles, "_RENEWALS_PER_LIFE", LOCAL_LIFE.total_seconds() / 0.02)
    return tmp_path / "mainspring" / "profiles.json"


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with Mainspring(database_url) as app:
        yield app


def seconds_left(connection: psycopg.Connection) -> float:
    row = connection.execute(LEFT).fetchone()
    return -1.0 if row is None else float(row[0])


def text(config: Path) -> str:
    """The token in the profile."""
    (profile,) = json.loads(config.read_text())["profiles"]
    return str(profile["token"])


def is_known(connection: psycopg.Connection, token: str) -> bool:
    found = "select from mainspring.tokens where digest = %s"
    return connection.execute(found, (digest(token),)).fetchone() is not None


@pytest.mark.parametrize(
    "loss", [AGE, "delete from mainspring.tokens where kind = 'console'"], ids=["aged", "pruned"]
)
async def test_it_is_renewed_while_it_runs(app, connection, config, loss):
    console = Console(app, "http://127.0.0.1:8080")
    await console.open()
    running = asyncio.create_task(console.run())
    connection.execute(loss)

    await asyncio.to_thread(
        wait_until,
        lambda: seconds_left(connection) > 500 and is_known(connection, text(config)),
        what="it is valid again",
    )
    caller = await tokens.authenticate(app.database, text(config))
    console.stop()
    await running
    await console.close()

    assert (caller.role, caller.identity) == ("operator", f"sql:{caller.actor}")
    assert json.loads(config.read_text())["profiles"] == []
    assert seconds_left(connection) == -1


async def test_one_that_was_revoked_stays_so(app, connection, config):
    console = Console(app, "http://127.0.0.1:8080")
    await console.open()
    ((name,),) = connection.execute("select name from mainspring.token_status").fetchall()
    await tokens.revoke(app.database, name)
    connection.execute(AGE)

    outcome = await tokens.renew_console(app.database, text(config), LOCAL_LIFE)

    assert outcome == "revoked"
    assert seconds_left(connection) < 0
    await console.close()
