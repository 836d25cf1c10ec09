"""`mainspring schedules trigger`, `history` and `backfill`: slots, made by hand and looked at."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from examples import hello
from mainspring.testing import bind, drain
from tests.support.commands import facts, sentence, table
from tests.support.processes import says

HELLO = ["--definition", "hello", "--payload", '{"name": "Ada"}']
NOON = ["schedules", "create", "noon", *HELLO, "--cron", "0 12 * * *"]


def last_noon() -> datetime:
    """Noon of yesterday in UTC, which is on no change of the clock."""
    today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return today - timedelta(days=1)


def test_trigger_prints_the_job_or_says_why_there_is_none(each_server_command):
    trigger = ["schedules", "trigger", "noon"]
    _, done, again, as_json = each_server_command(NOON, trigger, trigger, [*trigger, "--json"])

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "skipped: an earlier run is still live (overlap = skip)\n"
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["outcome"] == "skipped"


def test_a_trigger_that_no_scheduler_hears_says_so(each_server_command):
    trigger = ["schedules", "trigger", "noon"]
    _, asked, forced = each_server_command(
        [*NOON, "--condition-sql", "select false"], [*trigger, "--wait", "0"], [*trigger, "--force"]
    )

    assert asked.returncode == 1
    assert asked.stderr == "pending: no scheduler has looked at it yet; is one running?\n"
    assert forced.stdout == "1\n"


def test_a_trigger_waits_for_a_scheduler_that_checks_the_condition(start, command, database_url):
    says(start("scheduler", MAINSPRING_DATABASE_URL=database_url), "scheduler_started")
    command(*NOON, "--condition-sql", "select false")

    done = command("schedules", "trigger", "noon", "--wait", "30")

    assert (done.returncode, done.stderr) == (1, "skipped: the condition is not met\n")


def test_history_shows_slots_and_figures(each_server_command, database_url):
    each_server_command(NOON, ["schedules", "trigger", "noon"])
    with bind(hello.app, database_url):
        drain(hello.app)
    history = ["schedules", "history", "noon"]
    _, shown, as_json, none = each_server_command(
        ["schedules", "trigger", "noon"],
        history,
        [*history, "--json", "--limit", "1"],
        [*history, "--outcome", "failed"],
    )

    second, first = table(shown)
    assert list(second.values())[1:] == ["enqueued", "", "0", "", "manual", "2", "", "", ""]
    assert list(first.values())[1:3] == ["enqueued", "succeeded"]
    assert first["DETAILS"] == '"Hello, Ada!"'
    wanted = (
        "1 run: 1 successful, 0 failed, success rate 100%; 0 skipped, 0 missed, 0 failed checks"
    )
    assert shown.stderr == f"{wanted}\n"
    assert [slot["job_id"] for slot in facts(as_json)["slots"]] == ["2"]
    assert facts(as_json)["figures"]["successful_runs"] == 1
    assert none.stderr == f"No slots yet.\n{wanted}\n"


def test_history_in_a_pipe_has_instants_in_utc(command):
    """Those of the schedule's zone are for people."""
    command(*NOON)
    command("schedules", "trigger", "noon")
    history = ["schedules", "history", "noon"]

    (row,) = table(command(*history))

    (slot,) = facts(command(*history, "--json"))["slots"]
    assert row["SLOT"] == slot["scheduled_for"]
    assert row["SLOT"].endswith("Z")


@pytest.mark.parametrize(("wait", "is_taken"), [("30s", True), ("31s", False), ("1m", False)])
def test_the_wait_of_a_trigger_is_a_duration(command, wait, is_taken):
    command(*NOON)
    done = command("schedules", "trigger", "noon", "--wait", wait)

    assert (done.returncode == 0) is is_taken
    if not is_taken:
        assert f"--wait must be from 0s to 30s, not '{wait}'" in done.stderr


def test_backfill_lists_asks_and_enqueues(command, each_server_command):
    noon = last_noon()
    backfill = ["schedules", "backfill", "noon", "--from", f"{noon - timedelta(days=1):%Y-%m-%d}"]
    slots = [f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in (noon - timedelta(days=1), noon)]

    _, dry = each_server_command(NOON, [*backfill, "--dry-run", "--to", slots[1]])
    assert dry.stdout == "\n".join([*slots, "2 slots would be filled\n"])
    assert command(*backfill, "--to", slots[1], stdin="n\n").returncode == 1
    done = command(*backfill, "--to", slots[1], stdin="y\n")
    assert f"Enqueue 2 jobs of noon, {slots[0]} to {slots[1]}? [y/N]:" in done.stderr
    assert done.stdout.endswith(f"{slots[0]}  job 1\n{slots[1]}  job 2\n2 slots filled\n")


def test_backfill_has_nothing_to_do_twice(each_server_command):
    noon = f"{last_noon():%Y-%m-%dT%H:%M:%SZ}"
    backfill = ["schedules", "backfill", "noon", "--from", noon, "--to", noon, "--yes"]
    _, done, again = each_server_command(NOON, [*backfill, "--json"], backfill)

    assert facts(done) == [{"slot_at": noon, "job_id": "1"}]
    assert again.stdout == "Nothing to do: every slot of the range had its job.\n"


def test_a_range_that_cannot_be_filled_is_one_sentence(each_server_command):
    backfill = ["schedules", "backfill", "noon", "--yes", "--from"]
    refused = {
        "range: ends in the future": [*backfill, "2026-01-01", "--to", "2998-01-01"],
        "range: ends before it starts": [*backfill, "2026-01-02", "--to", "2026-01-01"],
        "range: contains more than 3 slots": [*backfill, "2020-01-01", "--limit", "3"],
        "--from must be": [*backfill, "yesterday"],
        "--to must be": [*backfill, "2026-01-01", "--to", "today"],
    }
    _, *answers = each_server_command(NOON, *refused.values())

    for said, done in zip(refused, answers, strict=True):
        assert sentence(done).startswith(f"error: {said}")
        assert done.returncode == 2


def test_a_slot_is_claimed_by_hand_once(each_server_command):
    noon = f"{last_noon():%Y-%m-%dT%H:%MZ}"
    trigger = ["schedules", "trigger", "noon", "--slot"]
    _, done, again, wrong, unread = each_server_command(
        NOON,
        [*trigger, noon],
        [*trigger, noon],
        [*trigger, "2026-01-01T11:00Z"],
        [*trigger, "noon"],
    )

    assert (done.returncode, done.stdout) == (0, "1\n")
    shown = noon.replace("Z", ":00Z")
    assert sentence(again) == f"error: slot {shown} of schedule 'noon' is already claimed: job 1"
    assert again.returncode == 1
    near = "slot: 2026-01-01T11:00:00Z is no slot of 'noon'; the next one is 2026-01-01T12:00:00Z"
    assert sentence(wrong) == f"error: {near}"
    assert sentence(unread).startswith("error: --slot must be")


def test_history_shows_what_a_run_said(each_server_command, connection):
    each_server_command(NOON, ["schedules", "trigger", "noon"])
    connection.execute(
        "update mainspring.slots set run_state = 'succeeded', started_at = fired_at,"
        " finished_at = fired_at + interval '3 s', message = '5 removed',"
        " details = jsonb_build_object('removed', 5)"
    )
    history = ["schedules", "history", "noon"]

    shown, as_json = each_server_command(history, [*history, "--json"])

    (row,) = table(shown)
    assert (row["TOOK"], row["MESSAGE"], row["DETAILS"]) == ("3", "5 removed", '{"removed":5}')
    (slot,) = facts(as_json)["slots"]
    assert (slot["message"], slot["details"]) == ("5 removed", {"removed": 5})
    assert (slot["seconds"], slot["is_details_omitted"]) == (3, False)
