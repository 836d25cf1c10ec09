"""The guides on schedules do what they say: they are followed from top to bottom as printed."""

import importlib
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

from mainspring.domain.schedules.slots import CatchUp, Misfires, SlotOutcome, plan
from mainspring.domain.schedules.timing import Timing
from mainspring.testing import bind
from tests.contract.test_docs import ROOT, python_blocks
from tests.contract.test_examples import block_commands, runnable
from tests.support.commands import clean_environment, mainspring_each, on_terminal
from tests.support.processes import WorkerProcess
from tests.support.waiting import await_until, wait_until

GUIDES = ROOT / "docs" / "guides"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TABLE_ROW = re.compile(r"^\| `(catch_up=.*?)`[^|]*\|(.*)\|$", re.MULTILINE)
DUE = """
select from mainspring.clocks where next_run_at <= now()
union all
select from mainspring.slots where outcome = 'pending'
"""
LIVE = "select from mainspring.jobs where waits_for is null"

_WIDE_ENOUGH = 150

Blocks = list[tuple[str, str]]


def read_blocks(page: str) -> Blocks:
    return BLOCK.findall((GUIDES / page).read_text())


@pytest.fixture
def jobs(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The first Python of the page, saved and imported as jobs.py."""
    source = next(text for language, text in read_blocks(request.param) if language == "python")
    (tmp_path / "jobs.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("jobs")
    del sys.modules["jobs"]


@pytest.fixture
def up(
    jobs: ModuleType, database_url: str, connection: psycopg.Connection, tmp_path: Path
) -> Iterator[WorkerProcess]:
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    words = ["up", "--app", "jobs:app"]
    process = WorkerProcess(words, environment, tmp_path / "up.log", tmp_path)
    try:
        process.started(connection)
        wait_until(lambda: "scheduler_leads" in process.log, 20, "the scheduler leads")
        yield process
    finally:
        process.end()


class Reader:
    """Follows a page block by block, and remembers what the last commands printed."""

    def __init__(self, url: str, connection: psycopg.Connection, names: dict[str, Any]) -> None:
        self._url, self._connection, self._names = url, connection, names
        self.printed = ""
        self.refused: list[str] = []

    async def follow(self, blocks: Blocks) -> None:
        for (language, text), (following, _) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            match language:
                case "python":
                    if (waiting := eval(runnable(text, "guide"), self._names)) is not None:
                        await waiting
                case "sql":
                    self._connection.execute(text.encode())
                    await await_until(self._is_quiet, what="the scheduler has done what is due")
                case "sh":
                    await await_until(self._is_idle, what="no job is live")
                    self._run(text, is_shown=following == "text")
                case "text":
                    assert self.printed == text

    def _is_quiet(self) -> bool:
        """A reader is slower than a scheduler."""
        return self._connection.execute(DUE).fetchone() is None

    def _is_idle(self) -> bool:
        """And slower than a worker."""
        return self._connection.execute(LIVE).fetchone() is None

    def _run(self, text: str, *, is_shown: bool) -> None:
        """On a terminal if the page shows what it prints, which takes longer."""
        url = {"MAINSPRING_DATABASE_URL": self._url}
        commands = block_commands(text)
        done = (
            [on_terminal(*words, columns=_WIDE_ENOUGH, environment=url) for words in commands]
            if is_shown
            else mainspring_each(commands, **url)
        )
        lines = [line.rstrip() for each in done for line in each.stdout.splitlines()]
        self.printed = "".join(f"{line}\n" for line in lines)
        self.refused += [each.stderr.strip() for each in done if each.returncode]


async def followed(page: str, url: str, connection: psycopg.Connection, jobs: ModuleType) -> Reader:
    reader = Reader(url, connection, vars(jobs))
    with bind(jobs.app, url):
        await reader.follow(read_blocks(page)[1:])
    return reader


@pytest.mark.parametrize("jobs", ["schedules.md"], indirect=True)
async def test_the_guide_to_schedules_can_be_followed(up, jobs, database_url, connection):
    reader = await followed("schedules.md", database_url, connection, jobs)

    assert reader.refused == []
    row = connection.execute(
        "select enabled, failed_launches from mainspring.schedule_status where name = 'stock'"
    ).fetchone()
    assert row == (True, 1)


@pytest.mark.parametrize("jobs", ["conditions.md"], indirect=True)
async def test_the_guide_to_conditions_can_be_followed(up, jobs, database_url, connection):
    reader = await followed("conditions.md", database_url, connection, jobs)

    assert reader.refused == ["skipped: 0.15 has not reached 0.2", "skipped: no new words"]
    found = connection.execute(
        "select name, outcome from mainspring.slot_status"
        " where trigger = 'manual' order by scheduled_for"
    ).fetchall()
    assert found == [
        ("tidy-words", "enqueued"),
        ("merge-words", "skipped"),
        ("merge-words", "enqueued"),
        ("merge-words", "enqueued"),
        ("new-words", "skipped"),
        ("new-words", "enqueued"),
    ]


@pytest.mark.parametrize("jobs", ["schedules.md"], indirect=True)
async def test_the_test_in_the_guide_passes(jobs, database_url):
    *_, source = python_blocks((GUIDES / "schedules.md").read_text())
    names: dict[str, Any] = {}
    exec(source, names)

    with bind(jobs.app, database_url):
        await names["test_the_report_is_about_its_slot"](jobs.app)


# The table of late slots

MISSED_AT = [datetime(2026, 1, 5, hour, tzinfo=UTC) for hour in range(1, 6)]
BACK_AT = datetime(2026, 1, 5, 5, 10, tzinfo=UTC)
SAID = {
    SlotOutcome.ENQUEUED: "job",
    SlotOutcome.MISSED: "missed",
    SlotOutcome.COALESCED: "coalesced",
}


def table_rows() -> list[tuple[str, list[str]]]:
    found = TABLE_ROW.findall((GUIDES / "schedules.md").read_text())
    return [(settings, [cell.strip() for cell in cells.split("|")]) for settings, cells in found]


def misfires(settings: str) -> Misfires:
    given = eval(f"dict({settings})", {"timedelta": timedelta, "dict": dict})
    return Misfires(
        given.get("misfire_grace", timedelta(minutes=1)),
        CatchUp(given["catch_up"]),
        given.get("catch_up_limit", 100),
        given.get("catch_up_max_age"),
    )


def test_the_table_of_late_slots_has_every_policy():
    policies = {misfires(settings).catch_up for settings, _ in table_rows()}

    assert policies == set(CatchUp)


@pytest.mark.parametrize(("settings", "cells"), table_rows())
def test_the_table_of_late_slots_is_true(settings, cells):
    timing = Timing(every=timedelta(hours=1), anchor_at=MISSED_AT[0])

    slots = plan(timing, misfires(settings), MISSED_AT[0], now=BACK_AT).slots

    fired = [slot for slot in slots if slot.outcome is SlotOutcome.ENQUEUED]
    assert [slot.at for slot in slots] == MISSED_AT
    assert [SAID[slot.outcome] for slot in slots] == cells[:5]
    assert [str(slot.missed) for slot in fired[-1:]] == [cell for cell in cells[5:] if cell]


# What follows the guides


async def test_a_command_that_prints_something_else_is_noticed(database_url, connection):
    reader = Reader(database_url, connection, {})

    with pytest.raises(AssertionError):
        await reader.follow([("sh", "mainspring cron explain @daily\n"), ("text", "Never\n")])
