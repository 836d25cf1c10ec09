"""Slots by SQL: triggered by hand, carried out for a scheduler, filled in afterwards."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import call
from tests.support.rows import count, refused
from tests.support.schedules import (
    Row,
    audit,
    insert_schedule,
    jobs,
    outcomes,
    schedule,
    slots,
    status,
    update,
)

SLOT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NEXT = datetime(2030, 1, 1, tzinfo=UTC)
STILL_LIVE = "an earlier run is still live (overlap = skip)"


def trigger(connection: psycopg.Connection, name: str = "tick", **options: Any) -> Row:
    (answer,) = call(connection, "trigger_scheduled_job", name, **options)
    return {**answer, "slot_at": datetime.fromisoformat(answer["slot_at"])}


def arrange(connection: psycopg.Connection, **columns: object) -> None:
    """Columns set behind the back of our triggers, which work again afterwards."""
    update(connection, None, **columns)
    connection.execute("set local session_replication_role = origin")


def now(connection: psycopg.Connection) -> datetime:
    ((instant,),) = connection.execute("select now()").fetchall()
    assert isinstance(instant, datetime)
    return instant


def waits(connection: psycopg.Connection) -> list[str | None]:
    """What each job of the schedule waits for, in the order of their slots."""
    return [job["waits_for"] for job in jobs(connection)]


def begin(connection: psycopg.Connection) -> None:
    """Every job of the schedule runs."""
    connection.execute(
        "update mainspring.jobs"
        " set state = 'running', fence = 1, worker_id = 7, started_at = now(), waits_for = null"
    )


# Triggered by hand


def test_a_trigger_fires_a_slot_of_its_own(tx):
    schedule_id = insert_schedule(tx, payload={"a": 1}, queue="slow", priority=5, max_attempts=9)

    answer = trigger(tx)

    (job,) = jobs(tx)
    assert (job["definition"], job["payload"], job["state"]) == ("work", {"a": 1}, "queued")
    assert (job["queue"], job["priority"], job["max_attempts"]) == ("slow", 5, 9)
    assert (job["schedule_id"], job["slot_at"]) == (schedule_id, answer["slot_at"])
    assert job["origin"] == {"schedule": "tick", "trigger": "manual", "missed": 0}


def test_a_trigger_answers_with_an_object(tx):
    insert_schedule(tx)

    answer = trigger(tx)

    (slot,) = slots(tx)
    assert answer == {
        "success": True,
        "job_name": "tick",
        "outcome": "enqueued",
        "slot_at": slot["scheduled_for"],
        "job_id": slot["job_id"],
        "message": f"job {slot['job_id']} is enqueued",
    }


def test_a_trigger_leaves_what_the_schedule_does_next(tx):
    insert_schedule(tx, run_at=NEXT)

    trigger(tx)

    row = schedule(tx)
    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (NEXT, NEXT, 1)
    assert row["last_enqueued_at"] > now(tx)
    assert row["enqueued_count"] == 1


def test_what_the_definition_says_holds_where_the_schedule_says_nothing(tx):
    insert_schedule(tx)
    trigger(tx)

    (job,) = jobs(tx)
    assert (job["queue"], job["priority"], job["max_attempts"]) == ("tools", 70, 4)


def test_a_disabled_schedule_may_be_triggered(tx):
    insert_schedule(tx, enabled=False)

    assert trigger(tx)["outcome"] == "enqueued"


@pytest.mark.parametrize(("name", "tenant"), [("tock", "default"), ("tick", "acme")])
def test_a_schedule_that_is_not_there_is_named(tx, name, tenant):
    insert_schedule(tx)

    with refused(tx, "MS040", f"there is no schedule '{name}'", name=name):
        trigger(tx, name, tenant=tenant)


def test_a_definition_that_is_not_there_is_named(tx):
    insert_schedule(tx, definition="nothing")

    with refused(tx, "MS010", "unknown definition 'nothing'", key="nothing"):
        trigger(tx)
    assert outcomes(tx) == []


def test_a_trigger_is_skipped_while_an_earlier_run_is_live(tx):
    insert_schedule(tx, overlap="skip")
    trigger(tx)

    answer = trigger(tx)

    assert (answer["success"], answer["outcome"], answer["job_id"]) == (False, "skipped", None)
    assert answer["message"] == STILL_LIVE
    assert (outcomes(tx), len(jobs(tx))) == (["enqueued", "skipped"], 1)
    assert schedule(tx)["skipped_count"] == 1
    assert schedule(tx)["last_skipped_at"] > now(tx)


def test_a_trigger_waits_for_its_turn(tx):
    insert_schedule(tx, overlap="queue")

    assert [trigger(tx)["success"] for _ in range(3)] == [True] * 3
    assert waits(tx) == [None, "turn", "turn"]


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_as_many_run_at_once_as_may(tx, overlap):
    insert_schedule(tx, overlap=overlap, max_running=2)
    for _ in range(2):
        trigger(tx)

    assert waits(tx) == [None, None]
    trigger(tx)
    assert waits(tx) == [None, None, *(["turn"] if overlap == "queue" else [])]


def test_a_trigger_replaces_a_run_that_has_not_started(tx):
    insert_schedule(tx, overlap="replace")
    trigger(tx)
    trigger(tx)

    first, second = jobs(tx)
    assert (first["state"], first["last_error"]) == (
        "canceled",
        "replaced by a newer slot of its schedule",
    )
    assert (second["state"], second["waits_for"]) == ("queued", None)
    assert slots(tx)[0]["run_state"] == "canceled"


def test_a_trigger_asks_a_running_run_to_stop_and_waits_for_it(tx):
    insert_schedule(tx, overlap="replace")
    trigger(tx)
    begin(tx)
    trigger(tx)

    first, second = jobs(tx)
    assert first["state"] == "running"
    assert first["cancel_requested_at"] > now(tx)
    assert (second["state"], second["waits_for"]) == ("queued", "turn")


CONDITIONAL: list[Row] = [
    {"condition_sql": "select true"},
    {"gauge_sql": "select 1", "gauge_lower": 1, "gauge_upper": 2},
]
PREPARED: list[Row] = [{"launcher": "stale"}, {"payload": {"day": "{{slot_at}}"}}]


@pytest.mark.parametrize("columns", [*CONDITIONAL, *PREPARED], ids=str)
def test_a_trigger_waits_for_a_scheduler_to_look(tx, columns):
    insert_schedule(tx, **columns)

    answer = trigger(tx)

    assert (answer["success"], answer["outcome"], answer["job_id"]) == (True, "pending", None)
    assert answer["message"] == "waiting for a scheduler"
    assert (outcomes(tx), jobs(tx)) == (["pending"], [])


@pytest.mark.parametrize("columns", CONDITIONAL, ids=str)
def test_a_forced_trigger_asks_no_condition(tx, columns):
    insert_schedule(tx, **columns)

    assert trigger(tx, force=True)["outcome"] == "enqueued"


@pytest.mark.parametrize("columns", PREPARED, ids=str)
def test_a_forced_trigger_still_has_its_payload_prepared(tx, columns):
    insert_schedule(tx, **columns)

    assert trigger(tx, force=True)["outcome"] == "pending"
    assert tx.execute("select is_forced from mainspring.slots").fetchall() == [(True,)]


def test_schedulers_hear_of_a_trigger_they_are_to_look_at(connection):
    insert_schedule(connection, condition_sql="select true")
    connection.execute("listen mainspring")
    trigger(connection)

    (message,) = connection.notifies(timeout=10, stop_after=1)
    assert message.payload == "schedule:"


def decide(connection: psycopg.Connection, answer: Row, outcome: str, **parts: Any) -> str | None:
    plan = {"schedule_id": schedule(connection)["schedule_id"], "outcome": outcome, **parts}
    plan["slot_at"] = answer["slot_at"].isoformat()
    ((decided,),) = connection.execute(
        "select mainspring.apply_trigger(%s)", (Jsonb(plan),)
    ).fetchall()
    return None if decided is None else str(decided)


def test_a_pending_trigger_is_decided_once(tx):
    insert_schedule(tx, launcher="stale")
    answer = trigger(tx)

    assert decide(tx, answer, "enqueued", payload={"b": 2}, definition="other") == "enqueued"
    assert decide(tx, answer, "enqueued") is None

    (job,) = jobs(tx)
    assert (job["definition"], job["payload"]) == ("other", {"b": 2})
    assert (outcomes(tx), slots(tx)[0]["job_id"]) == (["enqueued"], job["job_id"])


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_a_pending_trigger_may_come_to_nothing(tx, outcome):
    insert_schedule(tx, condition_sql="select false")
    answer = trigger(tx)

    assert decide(tx, answer, outcome, reason="no need") == outcome

    (slot,), row = slots(tx), schedule(tx)
    assert (slot["outcome"], slot["reason"], row["retry_count"]) == (outcome, "no need", 0)
    assert (row[f"{outcome}_count"], row[f"last_{outcome}_at"]) == (1, now(tx))
    assert row["last_error"] == ("no need" if outcome == "failed" else None)


def test_a_pending_trigger_respects_the_overlap_rule(tx):
    insert_schedule(tx, condition_sql="select true")
    trigger(tx, force=True)

    assert decide(tx, trigger(tx), "enqueued") == "skipped"


# Carried out for a scheduler


def slot(at: datetime = SLOT, outcome: str = "enqueued", **parts: Any) -> Row:
    facts = {"at": at.isoformat(), "outcome": outcome, "source": "scheduler", "missed": 0}
    return facts | parts


def apply(connection: psycopg.Connection, *slots: Row, **parts: Any) -> str | None:
    """What a scheduler decided that read the schedule as it is, or as the parts say."""
    row = schedule(connection)
    plan = {"schedule_id": row["schedule_id"], "revision": row["revision"], "slots": list(slots)}
    plan |= {"next_slot_at": NEXT.isoformat(), "failure": None, "in_line": False, **parts}
    ((outcome,),) = connection.execute(
        "select mainspring.apply_plan(%s)", (Jsonb(plan),)
    ).fetchall()
    return None if outcome is None else str(outcome)


def fail(connection: psycopg.Connection) -> None:
    assert apply(connection, slot(outcome="failed", reason="no"), failure="no") == "failed"


def test_a_plan_writes_slot_and_job_and_moves_on(tx):
    insert_schedule(tx, run_at=SLOT)

    assert apply(tx, slot(source="catchup", missed=2)) == "enqueued"

    (written,), (job,), row = slots(tx), jobs(tx), schedule(tx)
    assert (written["scheduled_for"], written["job_id"]) == (SLOT, job["job_id"])
    assert (written["trigger"], written["missed"]) == ("catchup", 2)
    assert job["origin"] == {"schedule": "tick", "trigger": "catchup", "missed": 2}
    assert (row["next_slot_at"], row["next_run_at"], row["revision"]) == (NEXT, NEXT, 1)
    assert (row["last_slot_at"], row["enqueued_count"]) == (SLOT, 1)


@pytest.mark.parametrize(
    "steal", ["max_retries = 9, cron = null, every = '2 hours'", "run_at = now()"]
)
def test_a_plan_for_a_schedule_that_has_changed_writes_nothing(tx, steal):
    insert_schedule(tx, cron="@daily")
    tx.execute(f"update mainspring.schedules set {steal}")
    row = schedule(tx)

    assert apply(tx, slot(), revision=0) is None
    assert (outcomes(tx), jobs(tx), schedule(tx)) == ([], [], row)


def test_a_plan_that_a_trigger_came_before_writes_nothing(tx):
    insert_schedule(tx)
    trigger(tx)

    assert apply(tx, slot(), revision=0) is None
    assert outcomes(tx) == ["enqueued"]


def test_a_plan_for_a_disabled_schedule_writes_nothing(tx):
    insert_schedule(tx)
    tx.execute("update mainspring.schedules set enabled = false")

    assert apply(tx, slot()) is None
    assert (outcomes(tx), schedule(tx)["next_run_at"]) == ([], None)


def test_a_slot_that_was_claimed_before_is_not_fired_again(tx):
    insert_schedule(tx, overlap="queue")
    apply(tx, slot())

    assert apply(tx, slot(), slot(SLOT + HOUR)) == "enqueued"
    assert [job["slot_at"] for job in jobs(tx)] == [SLOT, SLOT + HOUR]
    assert apply(tx, slot()) == "coalesced"
    assert (len(jobs(tx)), schedule(tx)["next_slot_at"]) == (2, NEXT)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_slots_that_are_caught_up_on_wait_for_each_other(tx, overlap):
    insert_schedule(tx, overlap=overlap)

    apply(tx, *(slot(SLOT + hours * HOUR) for hours in range(3)), in_line=True)

    assert (outcomes(tx), waits(tx)) == (["enqueued"] * 3, [None, "turn", "turn"])


def test_slots_that_do_not_wait_for_each_other_are_skipped(tx):
    insert_schedule(tx)

    assert apply(tx, slot(), slot(SLOT + HOUR)) == "skipped"
    assert [written["reason"] for written in slots(tx)] == [None, STILL_LIVE]


def test_slots_that_were_let_go_are_written_down(tx):
    insert_schedule(tx)
    later = slot(SLOT + HOUR, "coalesced", reason="later")

    assert apply(tx, slot(outcome="missed", reason="down"), later) == "coalesced"
    assert [(each["outcome"], each["reason"]) for each in slots(tx)] == [
        ("missed", "down"),
        ("coalesced", "later"),
    ]
    assert (schedule(tx)["missed_count"], schedule(tx)["enqueued_count"]) == (2, 0)


def test_a_plan_may_bring_payload_definition_and_gauge(tx):
    insert_schedule(tx)
    apply(tx, slot(), payload={"b": 2}, definition="other", gauge_is_high=True)

    (job,) = jobs(tx)
    assert (job["definition"], job["payload"]) == ("other", {"b": 2})
    assert schedule(tx)["gauge_is_high"]


def test_a_schedule_that_is_over_has_no_next_run(tx):
    insert_schedule(tx)
    apply(tx, slot(), next_slot_at=None)

    row = schedule(tx)
    assert (row["enabled"], row["next_run_at"], row["next_slot_at"]) == (True, None, None)


def test_jitter_delays_the_run_and_leaves_the_slot(tx):
    insert_schedule(tx, jitter="1 minute")
    apply(tx, slot())

    row = schedule(tx)
    assert row["next_slot_at"] == NEXT
    assert NEXT < row["next_run_at"] < NEXT + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60)]
)
def test_a_failure_is_tried_again_later_and_later(tx, failures, minutes):
    insert_schedule(tx, max_retries=100)
    arrange(tx, retry_count=failures - 1)

    fail(tx)

    row = schedule(tx)
    assert row["next_run_at"] == now(tx) + timedelta(minutes=minutes)
    assert (row["next_slot_at"], row["retry_count"]) == (row["next_run_at"], failures)
    assert (row["failed_count"], row["last_error"], row["last_failed_at"]) == (1, "no", now(tx))


def test_the_fourth_failure_does_not_disable(tx):
    insert_schedule(tx)
    arrange(tx, retry_count=3)
    fail(tx)

    assert (schedule(tx)["enabled"], len(audit(tx))) == (True, 1)


def test_the_fifth_failure_disables_with_the_reason(tx):
    insert_schedule(tx)
    arrange(tx, retry_count=4)
    tx.execute("set local mainspring.actor = 'scheduler'")
    fail(tx)

    row, entry = schedule(tx), audit(tx)[-1]
    assert (row["enabled"], row["next_run_at"], row["retry_count"]) == (False, None, 5)
    assert row["disabled_reason"] == "failed 5 times in a row; last error: no"
    assert (entry["action"], entry["actor"]) == ("disable", "scheduler")
    assert (entry["reason"], entry["after"]) == (row["disabled_reason"], {"enabled": False})


@pytest.mark.parametrize("outcome", ["skipped", "enqueued"])
def test_what_is_no_failure_starts_the_count_anew(tx, outcome):
    insert_schedule(tx)
    arrange(tx, retry_count=4)

    apply(tx, slot(outcome=outcome, reason="no need"))

    row = schedule(tx)
    assert (row["retry_count"], row[f"{outcome}_count"], row["failed_count"]) == (0, 1, 0)
    assert (row[f"last_{outcome}_at"], row["next_run_at"]) == (now(tx), NEXT)


def test_a_definition_that_is_missing_is_a_failure_of_the_schedule(tx):
    insert_schedule(tx, definition="nothing")

    assert apply(tx, slot()) == "failed"

    problem = "unknown definition 'nothing'"
    (written,), row = slots(tx), schedule(tx)
    assert (written["reason"], row["last_error"], row["retry_count"]) == (problem, problem, 1)


def test_lateness_is_told_of_what_was_due_and_not_of_what_was_missed(tx):
    insert_schedule(tx)
    late = now(tx) - timedelta(seconds=30)

    apply(tx, slot(late - HOUR, "missed"), slot(late))
    apply(tx, slot(now(tx) - timedelta(seconds=10), "skipped"))

    row = status(tx)
    assert (row["average_lateness_seconds"], row["worst_lateness_seconds"]) == (20, 30)
    assert slots(tx)[1]["lateness_seconds"] == 30


# Filled in afterwards


def backfill(connection: psycopg.Connection, *slots: datetime, **options: Any) -> list[Row]:
    schedule_id = schedule(connection)["schedule_id"]
    call(connection, "backfill", schedule_id, slots=list(slots), **options)
    return jobs(connection)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_past_slots_run_one_after_the_other_in_the_order_of_time(tx, overlap):
    insert_schedule(tx, overlap=overlap)

    filled = backfill(tx, SLOT + HOUR, SLOT)

    assert [job["slot_at"] for job in filled] == [SLOT, SLOT + HOUR]
    assert waits(tx) == [None, "turn"]
    assert [each["trigger"] for each in slots(tx)] == ["backfill"] * 2
    assert filled[0]["origin"]["trigger"] == "backfill"


def test_a_slot_that_had_its_job_is_not_filled_again(tx):
    insert_schedule(tx, overlap="queue")
    apply(tx, slot())

    assert len(backfill(tx, SLOT, SLOT + HOUR)) == 2
    assert [each["trigger"] for each in slots(tx)] == ["scheduler", "backfill"]


@pytest.mark.parametrize("outcome", ["missed", "coalesced", "skipped"])
def test_a_slot_without_a_job_is_filled(tx, outcome):
    insert_schedule(tx)
    apply(tx, slot(outcome=outcome, reason="down"))

    (job,) = backfill(tx, SLOT)

    (filled,) = slots(tx)
    assert (filled["outcome"], filled["job_id"]) == ("enqueued", job["job_id"])
    assert (filled["trigger"], filled["reason"]) == ("backfill", None)


def test_a_backfill_counts_as_a_run_and_moves_nothing(tx):
    insert_schedule(tx, run_at=NEXT)
    backfill(tx, SLOT)

    row = schedule(tx)
    assert (row["next_slot_at"], row["revision"]) == (NEXT, 1)
    assert row["last_enqueued_at"] > now(tx)


def test_slots_may_be_filled_with_payloads_of_their_own(tx):
    insert_schedule(tx)
    payloads = [Jsonb({"n": 2}), Jsonb({"n": 1})]

    filled = backfill(tx, SLOT + HOUR, SLOT, payloads=payloads)

    assert [job["payload"] for job in filled] == [{"n": 1}, {"n": 2}]


def test_nothing_is_filled_without_a_definition(tx):
    insert_schedule(tx, definition="nothing")

    with refused(tx, "MS010", "unknown definition", key="nothing"):
        backfill(tx, SLOT)
    assert count(tx, "slots") == 0
