"""A payload that no handler would take is refused where it is enqueued, and during a rolling
deployment each version of a handler gets the payloads that are its own."""

import json

import psycopg
import pytest

from tests.support.waiting import wait_until

OLD = """
from mainspring import Mainspring

app = Mainspring()

@app.job(key="greet", max_attempts=3)
async def greet(name: str) -> str:
    return f"old {name}"
"""
NEW = """
from mainspring import Mainspring

app = Mainspring()

@app.job(key="greet", max_attempts=3)
async def greet(first: str, last: str) -> str:
    return f"new {first} {last}"
"""
OLD_PAYLOAD, NEW_PAYLOAD = '{"name": "Ada"}', '{"first": "Ada", "last": "Lovelace"}'


@pytest.fixture
def worker(start, tmp_path, database_url, connection):
    """Starts a worker process with a version of the app."""

    def start_worker(name: str, code: str):
        (tmp_path / f"{name}.py").write_text(code)
        process = start(
            "worker",
            "--app",
            f"{name}:app",
            "--log-format",
            "json",
            cwd=tmp_path,
            MAINSPRING_DATABASE_URL=database_url,
        )
        process.started(connection)
        return process

    return start_worker


def test_a_wrong_payload_is_refused_when_it_is_enqueued(command):
    done = command("enqueue", "hello", '{"nme": "Ada"}')

    assert done.returncode == 2
    assert "name" in done.stderr
    assert "nme" in done.stderr


def test_a_definition_shows_what_its_handler_takes(command):
    shown = json.loads(command("definitions", "show", "hello", "--json").stdout)

    assert shown["arg_schema"]["required"] == ["name"]
    assert shown["arg_schema"]["additionalProperties"] is False


def test_plain_sql_finds_out_at_the_first_attempt(worker, connection, tmp_path):
    worker("old", OLD)

    state, attempt, error = ended(connection, enqueued(connection, '{"name": 7}'))

    assert (state, attempt) == ("failed", 1)
    assert error.startswith("payload/name: ")


def test_during_a_deployment_both_versions_get_their_own_payloads(worker, command, connection):
    worker("old", OLD)
    worker("new", NEW)

    old, new = command("enqueue", "greet", OLD_PAYLOAD), command("enqueue", "greet", NEW_PAYLOAD)
    by_sql = [enqueued(connection, payload) for payload in [OLD_PAYLOAD, NEW_PAYLOAD] * 4]
    wrong = command("enqueue", "greet", '{"title": "Countess"}')

    assert (old.returncode, new.returncode, wrong.returncode) == (0, 0, 2)
    assert {result(connection, job_id) for job_id in by_sql} == {"old Ada", "new Ada Lovelace"}
    assert failures(connection) == 0


def test_a_job_waits_for_the_first_worker_that_takes_it(worker, command, connection):
    worker("old", OLD)
    register_new(connection)

    job_id = enqueued(connection, NEW_PAYLOAD)
    wait_until(lambda: last_error(connection, job_id), 30, "the old worker has put it off")
    assert "waits for a worker whose handler takes the payload" in last_error(connection, job_id)
    worker("new", NEW)

    assert result(connection, job_id) == "new Ada Lovelace"
    assert failures(connection) == 0


def test_when_the_last_old_worker_is_gone_only_the_new_payload_is_taken(
    worker, command, connection
):
    old = worker("old", OLD)
    worker("new", NEW)
    assert old.stop() == 0

    refused = command("enqueue", "greet", OLD_PAYLOAD)
    state, attempt, error = ended(connection, enqueued(connection, OLD_PAYLOAD))

    assert refused.returncode == 2
    assert (state, attempt) == ("failed", 1)
    assert "name" in error


def register_new(connection: psycopg.Connection) -> None:
    """As the program does that is deployed before its workers."""
    schema = {
        "type": "object",
        "properties": {"first": {"type": "string"}, "last": {"type": "string"}},
        "required": ["first", "last"],
        "additionalProperties": False,
    }
    connection.execute(
        "update mainspring.definitions set arg_schema = %s::text::jsonb where key = 'greet'",
        (json.dumps(schema),),
    )


def enqueued(connection: psycopg.Connection, payload: str) -> int:
    row = connection.execute("select mainspring.enqueue('greet', %s::text::jsonb)", (payload,))
    ((job_id,),) = row.fetchall()
    return int(job_id)


def ended(connection: psycopg.Connection, job_id: int) -> tuple[str, int, str]:
    query = (
        "select state::text, attempt, last_error from mainspring.job_status"
        " where job_id = %s and finished_at is not null"
    )
    wait_until(lambda: connection.execute(query, (job_id,)).fetchone(), 60, "the job has ended")
    (row,) = connection.execute(query, (job_id,)).fetchall()
    return row


def result(connection: psycopg.Connection, job_id: int) -> str:
    assert ended(connection, job_id)[0] == "succeeded"
    query = "select result from mainspring.job_status where job_id = %s"
    ((answer,),) = connection.execute(query, (job_id,)).fetchall()
    return str(answer)


def last_error(connection: psycopg.Connection, job_id: int) -> str:
    query = "select last_error from mainspring.job_status where job_id = %s"
    ((error,),) = connection.execute(query, (job_id,)).fetchall()
    return error or ""


def failures(connection: psycopg.Connection) -> int:
    ((count,),) = connection.execute("select sum(failures) from mainspring.job_status").fetchall()
    return int(count)
