"""`mainspring scheduler` and `mainspring up`: started, used and stopped like a person would."""

import json
import re
from pathlib import Path
from signal import SIGINT, SIGTERM

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support import reading
from tests.support.processes import says
from tests.support.waiting import wait_until

SCHEDULED_APP = """
from mainspring import Launcher, Mainspring

app = Mainspring()

class Always(Launcher):
    def prepare_job_data(self):
        return {"name": self.schedule.name}

@app.schedule("@every 1s", name="tick", launcher=Always)
@app.schedule("@yearly", payload={"name": "Bob"})
@app.job
async def greet(name: str) -> str:
    return f"Hello, {name}!"
"""
ADA = '{"name": "Ada"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `scheduled:app` is."""
    (tmp_path / "scheduled.py").write_text(SCHEDULED_APP)
    return tmp_path


@pytest.fixture
def url(database_url: str) -> dict[str, str]:
    return {"MAINSPRING_DATABASE_URL": database_url}


def names(connection: psycopg.Connection) -> list[str]:
    rows = connection.execute("select name from mainspring.schedule_status order by name")
    return [name for (name,) in rows.fetchall()]


def results(connection: psycopg.Connection) -> list[str]:
    query = "select result #>> '{}' from mainspring.job_status where state = 'succeeded'"
    return [result for (result,) in connection.execute(query).fetchall()]


def test_a_scheduler_fires_until_it_is_told_to_stop(start, command, connection, url):
    scheduler = start("scheduler", "--log-format", "json", **url)
    says(scheduler, "scheduler_started")
    command("schedules", "create", "x", "--definition", "hello", "--every", "1s", "--payload", ADA)

    wait_until(lambda: reading.states(connection), what="a slot has fired")
    assert scheduler.stop() == 0
    events = [json.loads(line)["event"] for line in scheduler.log.splitlines()]
    assert events[:2] == ["scheduler_started", "scheduler_leads"]
    assert set(events[2:-1]) == {"slots_fired"}
    assert events[-1] == "scheduler_stopped"


def test_a_scheduler_knows_the_schedules_and_launchers_of_its_app(start, connection, folder, url):
    scheduler = start("scheduler", "--app", "scheduled:app", cwd=folder, **url)

    wait_until(lambda: reading.states(connection), 30, "a slot has fired")
    assert names(connection) == ["greet", "tick"]
    assert reading.job(connection, 1)["payload"] == {"name": "tick"}
    assert re.search("schedules_synced .*schedules=.*greet.* created=2 changed=0", scheduler.log)


def test_a_worker_stores_the_schedules_of_its_app_but_fires_none(start, connection, folder, url):
    worker = start("worker", "--app", "scheduled:app", cwd=folder, **url)
    worker.started(connection)

    assert names(connection) == ["greet", "tick"]
    assert worker.stop() == 0
    assert "scheduler_started" not in worker.log
    assert reading.states(connection) == {}


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_up_fires_and_works_and_one_signal_ends_both(start, connection, folder, url, number):
    up = start("up", "--app", "scheduled:app", cwd=folder, **url)

    wait_until(lambda: results(connection), 30, "a slot was fired and its job run")
    assert set(results(connection)) == {"Hello, tick!"}
    assert "fires the schedules of this database; the app declares greet, tick" in up.log
    up.signal(number)
    assert up.exit_code() == 0
    for event in ("worker_started", "worker_stopped", "scheduler_started", "scheduler_stopped"):
        assert up.log.count(event) == 1


# What only one of the two needs.
NEEDS = {"worker": ("workers", "version"), "scheduler": ("clocks", "checking_by")}


@pytest.mark.parametrize("role", NEEDS)
def test_a_role_that_fails_takes_the_other_with_it(start, server_url, role):
    table, column = NEEDS[role]
    other = "scheduler" if role == "worker" else "worker"
    with fresh_database(server_url) as own_url:
        with psycopg.connect(own_url) as connection:
            statement = f"alter table mainspring.{table} rename column {column} to gone"
            connection.execute(statement.encode())
        up = start("up", "--app", "examples.hello:app", MAINSPRING_DATABASE_URL=own_url)

        assert up.exit_code(30) == 1
    assert f'column "{column}"' in up.log
    assert up.log.count(f"{other}_stopped") == 1
