"""A secret that is told in every way there is: its handler has it, and nobody can read it."""

import hashlib
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.client import Client
from mainspring.client.direct_transport import DirectTransport
from mainspring.db.database import Database
from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support import secret_jobs
from tests.support.commands import mainspring_each
from tests.support.hidden_words import WORD, ensure_hidden, read_all
from tests.support.processes import WorkerProcess, worker_processes
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import wait_until

APP = "tests.support.secret_jobs:app"
KEYS = {"plain": "", "encrypted": generate_key()}
FUNCTION = """
create schema civic;
create function civic.tell(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into public.heard
    values ('function', encode(sha256(convert_to(payload ->> 'word', 'utf8')), 'hex'));
    raise notice 'it is %', payload ->> 'word';
    raise warning 'all of it is %', payload;
    if payload ->> 'way' = 'raise' then
        raise exception 'cannot use %', payload ->> 'word'
            using detail = payload::text, hint = payload ->> 'word';
    end if;
    if payload ->> 'way' = 'cast' then
        perform (payload ->> 'word')::integer;
    end if;
    return jsonb_build_object('success', payload ->> 'way' = 'return', 'message',
                              payload ->> 'word', 'details', jsonb_build_array(payload));
end $$;
"""
PROGRAM = """
import hashlib, os, sys, time
import psycopg
word = sys.argv[2]
with psycopg.connect(os.environ["TEST_DATABASE_URL"], autocommit=True) as connection:
    digest = hashlib.sha256(word.encode()).hexdigest()
    connection.execute("insert into heard values ('command', %s)", (digest,))
for stream in (sys.stdout, sys.stderr):
    for start in range(0, len(word), 3):
        stream.write(word[start : start + 3])
        stream.flush()
        time.sleep(0.2)
    # What is kept begins within the secret, and ends within it.
    stream.write("." * 70000 + word + "." * (65536 - len(word) - 12) + word[:-2])
    stream.flush()
sys.exit(int(sys.argv[3]))
"""
FINISHED = "select count(*) from mainspring.job_status where finished_at is not null"


@pytest.fixture(params=KEYS)
def keys(request: pytest.FixtureRequest) -> str:
    return KEYS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = (tmp_path / "programs").resolve()
    made.mkdir()
    path = made / "tell"
    path.write_text(f"#!{sys.executable}\n{PROGRAM}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return made


@pytest.fixture
def settings(database_url: str, keys: str, folder: Path) -> dict[str, str]:
    return {
        "encryption_keys": keys,
        "command_directories": str(folder),
        "command_environment": "TEST_DATABASE_URL,PYTHONPATH,PATH",
    }


@pytest.fixture
def app(
    database_url: str,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
) -> Iterator[Mainspring]:
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", database_url)
    monkeypatch.setenv("TEST_DATABASE_URL", database_url)
    connection.execute(secret_jobs.TABLES)
    secret_jobs.app.use(load(database_url=database_url, **settings))
    secret_jobs.app.register_definitions()
    yield secret_jobs.app
    secret_jobs.app.close()


@pytest.fixture
def worker(
    app: Mainspring, database_url: str, tmp_path: Path, settings: dict[str, str]
) -> Iterator[WorkerProcess]:
    with worker_processes(database_url, tmp_path) as start:
        yield start(app=APP, **settings)


def over(connection: psycopg.Connection, count: int) -> None:
    """Wait until so many jobs have ended."""

    wait_until(lambda: is_finished(connection, count), 60, f"{count} jobs end")


def is_finished(connection: psycopg.Connection, count: int) -> bool:
    ((finished,),) = connection.execute(FINISHED).fetchall()
    return int(finished) == count


def heard(connection: psycopg.Connection) -> set[str]:
    """Who got the real secret; fails if anybody got something else."""
    rows = connection.execute("select job, hash from heard").fetchall()
    assert {digest for _, digest in rows} == {hashlib.sha256(WORD.encode()).hexdigest()}
    return {job for job, _ in rows}


def printed_by_commands(url: str, job_ids: list[int]) -> str:
    """What the API says of jobs, schedules and definitions, and the command line prints."""
    lists = [["jobs", "list"], ["schedules", "list"], ["definitions", "list"]]
    shows = [["jobs", "show", str(job_id)] for job_id in job_ids[:2]]
    done = mainspring_each([*lists, *shows], MAINSPRING_DATABASE_URL=url)
    assert [each.returncode for each in done] == [0] * len(done)
    said = said_by_the_api(url, job_ids)
    return "\n".join([*(each.stdout + each.stderr for each in done), *said])


def said_by_the_api(url: str, job_ids: list[int]) -> list[str]:
    database = Database(load(database_url=url))
    with DirectTransport(database) as transport:
        client = Client("", transport.token, transport=transport)
        models = [
            *client.jobs.list(),
            *client.schedules.list(),
            *client.definitions.list(),
            *(client.jobs.get(job_id) for job_id in job_ids),
            *(attempt for job_id in job_ids for attempt in client.jobs.attempts(job_id)),
            *client.audit(),
        ]
        said = [model.model_dump_json() for model in models]
    database.close()
    return said


def test_python_handlers_have_the_secret_and_nobody_else(app, worker, connection, database_url):
    handles = [
        app.enqueue(key, {"word": WORD, "way": way}, correlation_id=way)
        for key in ("tell_in_loop", "tell_in_thread", "tell_in_process")
        for way in secret_jobs.WAYS
    ]
    app.schedules.create("daily", "tell_in_loop", cron="@daily", payload={"word": WORD, "way": "x"})
    app.schedules.update("daily", priority=7, payload={"word": f"{WORD}!", "way": "x"})
    over(connection, len(handles))
    worker.stop()

    assert heard(connection) == {"loop", "thread", "process", "checkpoint"}
    ensure_hidden(read_all(connection))
    ensure_hidden(printed_by_commands(database_url, [handle.id for handle in handles]))
    ensure_hidden(worker.log)
    assert worker.log.count("it is [redacted]") >= len(handles)
    assert "has [redacted]" in worker.log


def test_what_a_command_prints_in_pieces_is_hidden(app, worker, connection, database_url):
    app.definitions.create(
        "tell",
        "command",
        argv=["tell", "--", "{word}", "{code}"],
        environment=["TEST_DATABASE_URL", "PYTHONPATH", "PATH"],
        arg_schema=of(word=MARKED, code={"type": "integer"}),
        max_attempts=1,
    )
    handles = [app.enqueue("tell", {"word": WORD, "code": code}) for code in (0, 1)]
    seen = []

    def is_over() -> bool:
        seen.append(read_all(connection))
        return is_finished(connection, 2)

    wait_until(is_over, 60, "the commands end")

    assert heard(connection) == {"command"}
    for text in seen:
        ensure_hidden(text)
    (attempt,) = app.blocking(app.jobs.aattempts(handles[0].id))
    assert "[redacted]" in attempt.stdout_tail
    assert "[redacted]" in attempt.stderr_tail
    ensure_hidden(printed_by_commands(database_url, [handle.id for handle in handles]))
    ensure_hidden(worker.log)


def test_what_a_function_says_is_hidden(app, worker, connection, database_url):
    connection.execute(FUNCTION)
    app.definitions.create(
        "tell_by_sql", "sql", function="civic.tell", arg_schema=secret_jobs.SCHEMA, max_attempts=1
    )
    ways = ("return", "refuse", "raise", "cast")
    handles = [app.enqueue("tell_by_sql", {"word": WORD, "way": way}) for way in ways]
    over(connection, len(handles))

    assert heard(connection) == {"function"}
    ensure_hidden(read_all(connection))
    ensure_hidden(printed_by_commands(database_url, [handle.id for handle in handles]))
    ensure_hidden(worker.log)
    errors = [handle.job().last_error or "" for handle in handles]
    assert errors[2].startswith("cannot use [redacted] (P0001)")


# In the test's own event loop
