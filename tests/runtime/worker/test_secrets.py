"""A secret that is told in every way there is: its handler has it, and nobody can read it."""

import base64
import hashlib
import json
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from mainspring import JobState, Launcher, Mainspring
from mainspring.client import Client
from mainspring.client.direct_transport import DirectTransport
from mainspring.db.database import Database
from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support import secret_jobs
from tests.support.commands import mainspring_each
from tests.support.processes import WorkerProcess, worker_processes
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working

WORD = 'S3cret/wörd "qu\'ote" x7'
APP = "tests.support.secret_jobs:app"
HEARD: list[str] = []
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
VIEWS = """
select relname from pg_class
 where relnamespace = 'mainspring'::regnamespace and relkind = 'v' or relname = 'audit'
"""


def forms(word: str) -> list[str]:
    inner = base64.b64encode(f"user:{word}".encode()).decode()[8:-8]
    escaped = [quote(word), quote(word, safe=""), json.dumps(word)[1:-1], repr(word)[1:-1]]
    return [word, *escaped, inner]


def ensure_hidden(text: str) -> None:
    found = [form for form in forms(WORD) if form in text]
    assert found == [], text[max(text.find(found[0]) - 500, 0) :][:1000]
    # What was cut or came in pieces.
    assert WORD[:12] not in text
    assert WORD[-12:] not in text


def read_all(connection: psycopg.Connection) -> str:
    """Everything that readers of the SQL door can see."""
    texts = []
    for (name,) in connection.execute(VIEWS).fetchall():
        rows = connection.execute(f"select * from mainspring.{name} as row".encode()).fetchall()
        texts += [f"{row} {json.dumps(row, default=str, ensure_ascii=False)}" for row in rows]
    return "\n".join(texts)


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


@pytest.fixture
async def own(database_url: str) -> AsyncIterator[Mainspring]:
    """An app with a key, whose job `login` has a secret and notes what it got."""
    settings = load(database_url=database_url, encryption_keys=KEYS["encrypted"])
    async with Mainspring(settings=settings) as app:
        HEARD.clear()

        @app.job(key="login", arg_schema=of(word=MARKED), max_attempts=2)
        async def login(word: str) -> None:
            HEARD.append(word)

        yield app


async def test_a_worker_without_the_key_fails_the_attempt_and_leaves_it_to_another(own):
    async with working(own, encryption_keys=generate_key()):
        handle = await own.aenqueue("login", {"word": WORD})

        async def has_failed() -> Any:
            job = await handle.ajob()
            return job if job.failures else None

        job = await await_until(has_failed)

    assert job.state is JobState.QUEUED
    assert "payload.word is encrypted with the key" in (job.last_error or "")
    assert HEARD == []


async def test_a_value_that_was_changed_fails_for_good(own, connection):
    handle = await own.aenqueue("login", {"word": WORD})
    connection.execute(
        "update mainspring.jobs set payload = jsonb_set(payload, '{word,value}', '\"AAAA\"')"
    )
    async with working(own, encryption_keys=KEYS["encrypted"]):
        job = await ended(handle)

    assert job.state is JobState.FAILED
    assert job.last_error == (
        "payload.word was changed, or moved from another field, definition or tenant"
    )


async def test_a_handler_that_marks_nothing_any_more_still_gets_the_real_value(own):
    handle = await own.aenqueue("login", {"word": WORD})
    got = []

    async with Mainspring(own.database.url) as later:

        @later.job(key="login")
        async def login(word: str) -> str:
            got.append(word)
            return word

        async with working(later, encryption_keys=KEYS["encrypted"]):
            job = await ended(handle)

    assert got == [WORD]
    assert job.result == "[redacted]"


async def test_a_payload_by_plain_sql_is_hidden_without_being_encrypted(own, connection):
    await own.aregister_definitions()
    connection.execute(
        "select mainspring.enqueue('login', jsonb_build_object('word', %s::text))", (WORD,)
    )
    async with working(own, encryption_keys=KEYS["encrypted"]):
        await await_until(lambda: HEARD)

    assert HEARD == [WORD]
    ensure_hidden(read_all(connection))


async def test_an_error_shows_no_token_even_where_nothing_is_marked(own):
    @own.job(key="connect", max_attempts=1)
    async def connect() -> None:
        raise OSError("no answer from postgres://ada:hunter2@db")

    async with working(own):
        job = await ended(await own.aenqueue("connect", {}))

    assert "postgres://ada:[redacted]@db" in (job.last_error or "")
    assert "hunter2" not in (job.last_error or "")


async def test_a_result_without_marked_secrets_stays_as_it_is(own):
    @own.job(key="connect")
    async def connect() -> str:
        return "password=hunter2"

    async with working(own):
        job = await ended(await own.aenqueue("connect", {}))

    assert job.result == "password=hunter2"


# Schedules


def enqueued(connection: psycopg.Connection) -> Any:
    """The payload of a live job as it is stored."""
    return connection.execute("select payload from mainspring.jobs").fetchone()


class TellsAll(Launcher):
    """Reads the real payload of its schedule, and fails or goes on."""

    got: list[Any] = []  # noqa: RUF012 - read back by the test

    def check_conditions(self) -> bool:
        self.got.append(dict(self.launch.schedule.payload))
        if self.launch.schedule.name == "fails":
            raise ValueError(f"cannot use {self.launch.schedule.payload['word']}")
        return True

    def prepare_job_data(self) -> dict[str, Any]:
        return {"word": self.launch.schedule.payload["word"] + "!"}


async def test_a_launcher_has_the_secret_and_its_failure_hides_it(own, connection):
    TellsAll.got.clear()
    own.register_launcher("tells_all", TellsAll)
    await own.schedules.acreate(
        "fails", "login", cron="@daily", payload={"word": WORD}, launcher="tells_all"
    )
    async with own.schedules.running():
        await own.schedules.atrigger("fails")

        def has_failed() -> bool:
            found = connection.execute("select from mainspring.slots where outcome = 'failed'")
            return found.fetchone() is not None

        await await_until(has_failed)

    assert TellsAll.got == [{"word": WORD}]
    ensure_hidden(read_all(connection))
    assert "cannot use [redacted]" in read_all(connection)


async def test_what_a_launcher_makes_is_encrypted_with_the_job(own, connection):
    own.register_launcher("tells_all", TellsAll)
    await own.schedules.acreate(
        "works", "login", cron="@daily", payload={"word": WORD}, launcher="tells_all"
    )
    async with own.schedules.running():
        await own.schedules.atrigger("works")
        (stored,) = await await_until(lambda: enqueued(connection))
    async with working(own, encryption_keys=KEYS["encrypted"]):
        await await_until(lambda: HEARD)

    assert stored["word"]["$mainspring"] == "encrypted"
    assert [f"{WORD}!"] == HEARD


async def test_a_template_is_rendered_before_it_is_encrypted(own, connection):
    payload = {"word": "for {{schedule}} only"}
    await own.schedules.acreate("daily", "login", cron="@daily", payload=payload)
    async with own.schedules.running():
        await own.schedules.atrigger("daily")
        (stored,) = await await_until(lambda: enqueued(connection))
    async with working(own, encryption_keys=KEYS["encrypted"]):
        await await_until(lambda: HEARD)

    assert stored["word"]["$mainspring"] == "encrypted"
    assert HEARD == ["for daily only"]
