"""An example as its readers run it: its tables, then `mainspring up`."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from examples.install import install
from mainspring.testing import bind
from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess
from tests.support.schedules import Row, is_planned, slots
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

StartExample = Callable[[str], None]
Trigger = Callable[[str], Row]


@pytest.fixture
def start(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
) -> Iterator[StartExample]:
    """A function that installs an example and starts it; nothing fires by itself."""
    started: list[WorkerProcess] = []

    def start(example: str) -> None:
        install(database_url, example)
        has_app = (ROOT / "examples" / example / "jobs.py").exists()
        if has_app:
            declare(f"examples.{example}.jobs", database_url)
        connection.execute("update mainspring.schedules set paused_until = now() + interval '1 d'")
        environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
        words = ["up", *(["--app", f"examples.{example}.jobs:app"] if has_app else [])]
        up = WorkerProcess(words, environment, tmp_path / "up.log", ROOT)
        started.append(up)
        up.started(connection)
        wait_until(lambda: are_planned(connection), 10, "the schedules are planned")

    try:
        yield start
    finally:
        for up in started:
            up.end()


def declare(module: str, url: str) -> None:
    """Store the schedules of an example before it starts, so that they can be paused."""
    app = importlib.import_module(module).app
    with bind(app, url):
        app.blocking(app.schedules.aprepare())


def are_planned(connection: psycopg.Connection) -> bool:
    names = connection.execute("select name from mainspring.schedule_status").fetchall()
    return all(is_planned(connection, name) for (name,) in names)


@pytest.fixture
def trigger(connection: psycopg.Connection) -> Trigger:
    """A function that fires a schedule by hand and gives its slot when all is done."""

    def trigger(name: str) -> Row:
        connection.execute("select mainspring.trigger_scheduled_job(%s)", (name,))
        return wait_until(lambda: _settled(connection, name), 20, f"{name} is done")

    return trigger


def _settled(connection: psycopg.Connection, name: str) -> Row:
    """The newest slot; empty while it is pending or its job has not ended."""
    newest = slots(connection, name)[-1]
    is_done = newest["run_state"] or newest["outcome"] not in ("pending", "enqueued")
    return newest if is_done else {}
