"""The pages for teams that arrive from another scheduler: what comes after is run as printed."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from signal import SIGKILL
from typing import Any

import psycopg
import pytest

from mainspring.domain.schedules.slots import SlotOutcome, plan
from mainspring.domain.schedules.timing import Timing
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import run
from tests.contract.test_schedule_guides import misfires
from tests.support.commands import clean_environment, run_python
from tests.support.processes import WorkerProcess
from tests.support.waiting import wait_until

PAGES = ROOT / "docs" / "coming_from"
# The paragraph before a block may name the file that it is saved as. A block with a title is of
# the system that is left, and is not run.
BLOCKS = re.compile(
    r"^(?:(?P<prose>.*)\n\n?)?```(?P<language>\w+)(?P<title>.*)\n(?P<text>(?s:.*?))^```$",
    re.MULTILINE,
)
FILE = re.compile(r"`(\w+\.py)`")
ENDLESS = ("up", "worker", "scheduler")
LIVE = "select from mainspring.jobs where waits_for is null"
LISTENERS = """
select count(*) from pg_stat_activity
 where application_name = 'mainspring listen' and datname = current_database()
"""


class Newcomer:
    """Follows a page from top to bottom, in a folder and a database of their own."""

    def __init__(self, folder: Path, url: str, connection: psycopg.Connection) -> None:
        self._folder, self._url, self._connection = folder, url, connection
        self._environment = clean_environment(MAINSPRING_DATABASE_URL=url)
        self._workers: list[WorkerProcess] = []
        self._sites: list[subprocess.Popen[bytes]] = []
        self.printed: list[str] = []
        self.rows: list[tuple[Any, ...]] = []

    def follow(self, page: str) -> None:
        for block in BLOCKS.finditer((PAGES / page).read_text()):
            if block["title"]:
                continue
            match block["language"]:
                case "python":
                    self._save(FILE.findall(block["prose"])[-1], block["text"])
                case "sql":
                    self.execute(block["text"])
                case "sh":
                    for line in block["text"].replace("\\\n", " ").splitlines():
                        self._type(shlex.split(line))
                case language:
                    raise AssertionError(f"nobody knows what to do with {language}")

    def execute(self, statements: str) -> None:
        self._wait()
        cursor = self._connection.execute(statements.encode())
        while cursor.nextset():
            pass
        self.rows = cursor.fetchall() if cursor.description else []

    def end(self) -> None:
        for worker in self._workers:
            worker.end()
        for site in self._sites:
            os.killpg(site.pid, SIGKILL)
            site.wait(10)

    def _save(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)
        if name.startswith("test_"):
            self._test(name)
        elif name == "program.py":
            done = run_python([name], self._environment, cwd=self._folder)
            assert done.returncode == 0, done.stderr
            self.printed += done.stdout.splitlines()

    def _test(self, name: str) -> None:
        found = {point.value for point in entry_points(group="pytest11")}
        plugin = [] if "mainspring.testing" in found else ["-p", "mainspring.testing"]
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", *plugin, name]
        done = run_python(words, self._environment, cwd=self._folder)
        assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout + done.stderr

    def _type(self, words: list[str]) -> None:
        match words:
            case ["mainspring", command, *_] if command in ENDLESS:
                self._work(words[1:])
            case ["mainspring", *rest]:
                self._wait()
                self.printed += run(rest, self._folder, self._url).stdout.splitlines()
            case ["gunicorn", *rest]:
                self._serve(rest)
            case _:
                raise AssertionError(f"nobody knows how to run {words}")

    def _work(self, words: list[str]) -> None:
        log = self._folder / f"{len(self._workers)}.log"
        worker = WorkerProcess(words, self._environment, log, self._folder)
        self._workers.append(worker)
        worker.started(self._connection)

    def _serve(self, words: list[str]) -> None:
        """A scheduler in every process of the web server, which takes any port."""
        log = self._folder / "site.log"
        with log.open("wb") as stream:
            site = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", *words, "-b", "127.0.0.1:0"],
                cwd=self._folder,
                env=self._environment,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self._sites.append(site)
        processes = int(words[words.index("-w") + 1])

        def is_listening() -> bool:
            assert site.poll() is None, log.read_text()
            return self._connection.execute(LISTENERS).fetchone() == (processes,)

        wait_until(is_listening, 60, "every process of the site has a scheduler")

    def _wait(self) -> None:
        """A reader is slower than a worker."""
        wait_until(lambda: self._connection.execute(LIVE).fetchone() is None)


@pytest.fixture
def newcomer(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
) -> Iterator[Newcomer]:
    newcomer = Newcomer(tmp_path, database_url, connection)
    try:
        yield newcomer
    finally:
        newcomer.end()


# APScheduler

ONE_JOB_A_SLOT = """
select count(*), count(distinct slot_at) from mainspring.job_status where schedule = 'poll'
"""


def test_four_web_processes_fire_each_slot_of_the_page_on_apscheduler_once(newcomer, connection):
    newcomer.follow("apscheduler.md")

    (jobs, slots), *_ = connection.execute(ONE_JOB_A_SLOT).fetchall()
    assert jobs == slots >= 1
    assert any("2027-01-04 07:00:00+01:00" in line for line in newcomer.printed)
    assert newcomer.printed[-1] == "enqueued"
    found = connection.execute("select name, every, enabled from mainspring.schedules order by 1")
    assert found.fetchall() == [
        ("new-year", None, True),
        ("poll", timedelta(seconds=30), True),
        ("weekly", None, True),
    ]


LATE_RUN = re.compile(r"^\| `(misfire_grace_time=.*)` \| `(catch_up=.*)` \|$", re.MULTILINE)
LATE_RUNS = LATE_RUN.findall((PAGES / "apscheduler.md").read_text())
DUE_AT = datetime(2026, 1, 5, tzinfo=UTC)


def their_runs(due: list[datetime], now: datetime, *, grace: int | None, coalesce: bool) -> Any:
    """APScheduler's rule: the last of the due times if they coalesce, then what is not too late."""
    kept = due[-1:] if coalesce else due
    return [at for at in kept if grace is None or now - at <= timedelta(seconds=grace)]


def test_the_page_on_apscheduler_covers_late_runs_with_and_without_both_settings():
    assert len({theirs for theirs, _ in LATE_RUNS}) == 4


@pytest.mark.parametrize(("theirs", "ours"), LATE_RUNS)
@pytest.mark.parametrize("step", [1, 60, 100, 300, 3600])
@pytest.mark.parametrize("late", [0, 1, 59, 299, 300, 301, 3599, 3600])
def test_late_runs_are_what_the_page_on_apscheduler_says(theirs, ours, step, late):
    timing = Timing(every=timedelta(seconds=step), anchor_at=DUE_AT)
    now = DUE_AT + timedelta(seconds=late)
    due = [DUE_AT + timedelta(seconds=n * step) for n in range(late // step + 1)][-100:]
    given = eval(f"dict({theirs})", {"dict": dict})

    slots = plan(timing, misfires(ours), DUE_AT, now=now).slots

    fired = [slot.at for slot in slots if slot.outcome is SlotOutcome.ENQUEUED]
    rule = {"grace": given["misfire_grace_time"], "coalesce": given["coalesce"]}
    assert fired == their_runs(due, now, **rule)


# pg_cron

CRON_JOB = """
create schema cron;
create table cron.job (
    jobid bigint generated always as identity primary key,
    schedule text not null, command text not null,
    nodename text not null default 'localhost', nodeport int not null default 5432,
    database text not null default current_database(), username text not null default current_user,
    active boolean not null default true, jobname text);
create table visits (id bigint);
grant insert on visits to cron_reporter;
insert into cron.job (schedule, command, active, jobname, username, database) values
    ('0 12 $ * *', 'insert into visits values (1); select 1', true, 'pay', current_user, default),
    ('5 seconds', 'select ''it''''s''', false, null, current_user, default),
    ('@daily', 'insert into visits values (2)', true, 'pay', 'cron_reporter', default),
    ('0 3 * * *', 'VACUUM', true, 'nightly vacuum', current_user, default),
    ('0 3 * * *', 'select 1', true, 'elsewhere', current_user, 'another')
"""
MOVED = """
select name, definition, cron, zone, enabled, overlap from mainspring.schedules
 where definition like 'cron%' order by name
"""


@pytest.fixture
def reporter(connection: psycopg.Connection) -> Iterator[None]:
    """A role belongs to the server, so it goes with the test."""
    connection.execute("drop role if exists cron_reporter")
    connection.execute("create role cron_reporter login")
    yield
    connection.execute("drop owned by cron_reporter; drop role cron_reporter")


@pytest.mark.usefixtures("reporter")
def test_the_page_on_pg_cron_can_be_followed(newcomer, connection):
    connection.execute(CRON_JOB)

    newcomer.follow("pg_cron.md")

    assert connection.execute(MOVED).fetchall() == [
        ("job 2", "cron_jobs.job_2", "@every 5s", "GMT", False, "queue"),
        ("pay", "cron_jobs.job_1", "0 12 L * *", "GMT", True, "queue"),
        ("pay of cron_reporter", "cron_jobs.job_3", "@daily", "GMT", True, "queue"),
    ]
    runs = connection.execute("select name, run_state, message from mainspring.slot_status")
    assert runs.fetchall() == [("trim", "succeeded", "1 events removed")]
    assert run_of(newcomer, "pay") == ("succeeded", "done")
    assert run_of(newcomer, "job 2") == ("succeeded", "done")
    assert run_of(newcomer, "pay of cron_reporter") == ("succeeded", "done")
    assert connection.execute("select id from visits order by id").fetchall() == [(1,), (2,)]


def run_of(newcomer: Newcomer, name: str) -> tuple[Any, ...]:
    newcomer.execute(f"select mainspring.trigger_scheduled_job('{name}')")
    newcomer.execute(f"select run_state, message from mainspring.slot_status where name = '{name}'")
    (row,) = newcomer.rows
    return row


# Celery and Procrastinate


def test_the_page_on_celery_can_be_followed(newcomer, connection):
    newcomer.follow("celery_beat.md")

    assert newcomer.printed == ["30"]
    found = connection.execute(
        "select payload ->> 'audience', state, waits_for, deadline_at is not null"
        " from mainspring.job_status where definition = 'digest' order by job_id"
    )
    delayed, expiring = found.fetchall()
    assert delayed == ("friends", "queued", "time", False)
    assert expiring[0] == "family"
    assert expiring[3]
    row = connection.execute("select cron, zone from mainspring.schedules where name = 'morning'")
    assert row.fetchone() == ("30 7 * * *", "Europe/Berlin")


def test_the_page_on_procrastinate_can_be_followed(newcomer, connection):
    newcomer.follow("procrastinate.md")

    assert newcomer.printed == ["True False", "all"]
    assert connection.execute("select count(*) from orders").fetchone() == (1,)


# What follows the pages


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_every_page_is_short_and_ends_with_what_is_missing(page):
    text = (PAGES / page).read_text()

    assert len(text.splitlines()) <= 150
    assert text.rpartition("\n## ")[2].startswith("What Mainspring does not do\n")
    assert text.count("```") == 2 * len(BLOCKS.findall(text))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```sh\nmainspring cron explain '61 * * * *'\n```", "61 is not from 0 to 59"),
        ("```sh\nrm -r jobs.py\n```", "nobody knows how to run"),
        ("```sql\nselect 1 / 0\n```", "division by zero"),
        ("`program.py`:\n```python\n1 / 0\n```", "ZeroDivisionError"),
        ("`test_it.py`:\n```python\ndef test_it():\n    assert not 1\n```", "1 failed"),
    ],
)
def test_a_block_that_fails_is_noticed(newcomer, monkeypatch, tmp_path, block, said):
    monkeypatch.setattr("tests.contract.test_coming_from.PAGES", tmp_path)
    (tmp_path / "page.md").write_text(f"# Page\n\n{block}\n")

    with pytest.raises((AssertionError, psycopg.Error), match=said):
        newcomer.follow("page.md")
