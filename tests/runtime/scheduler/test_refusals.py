"""What the database refuses to a scheduler costs one schedule, and not the others."""

import psycopg
import pytest

from mainspring import JobState, Mainspring
from tests.support import schedules
from tests.support.databases import change_schema
from tests.support.log_lines import captured_lines
from tests.support.rows import insert_definition, insert_job, job
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

EVERY_SECOND = {"cron": None, "every": "1 second", "max_running": 1000, "overlap": "queue"}
KINDS = {
    "fires": {},
    "is checked": {"condition_sql": "select true"},
    "has a template": {"payload": '{"at": "{{slot_at}}"}'},
}
REFUSE = """
create function public.refuse() returns trigger language plpgsql as $$ begin
    raise 'it is refused' using errcode = '54000'; end $$;
create trigger refuse before insert on mainspring.jobs for each row
    when (new.definition = 'bad') execute function public.refuse();
"""
NO_FIGURES = """
create function public.refuse() returns trigger language plpgsql as $$ begin
    raise 'it is refused' using errcode = '54000'; end $$;
create trigger refuse before insert on mainspring.schedule_figures for each row
    execute function public.refuse();
"""
RAN = """
insert into mainspring.slots (schedule_id, scheduled_for, outcome, trigger, job_id, run_state)
select schedule_id, now() - interval '1 day', 'enqueued', 'scheduler', %s, 'succeeded'
  from mainspring.schedules
"""
GONE = 4711
FAILURES = """
select distinct slot.outcome::text, slot.reason
  from mainspring.slots as slot join mainspring.schedules as schedule using (schedule_id)
 where schedule.name = 'bad'
"""


@pytest.mark.parametrize("columns", KINDS.values(), ids=KINDS)
async def test_a_job_that_cannot_be_written_costs_no_other_schedule_its_slot(
    app: Mainspring, connection: psycopg.Connection, columns
):
    insert_definition(connection, "bad")
    schedules.insert_schedule(connection, "good", **EVERY_SECOND, **columns)
    schedules.insert_schedule(connection, "bad", **{**EVERY_SECOND, "definition": "bad"}, **columns)
    connection.execute(REFUSE)

    async with scheduling(app):
        await await_until(lambda: connection.execute(FAILURES).fetchall())
        await await_until(lambda: schedules.outcomes(connection, "good").count("enqueued") >= 3)

    assert connection.execute(FAILURES).fetchall() == [("failed", "it is refused")]


@pytest.mark.parametrize("columns", KINDS.values(), ids=KINDS)
async def test_no_slot_fails_for_a_missing_privilege(
    app: Mainspring, connection: psycopg.Connection, columns
):
    schedules.insert_schedule(connection, "good", **{**EVERY_SECOND, "catch_up": "all"}, **columns)
    connection.execute(REFUSE.replace("54000", "42501").replace("'bad'", "'work'"))

    def is_noticed() -> bool:
        told = {line["event"] for line in logs}
        return bool(told & {"loop_failed", "check_failed"} or outcomes())

    def outcomes() -> list[str]:
        return schedules.outcomes(connection, "good")

    with captured_lines() as logs:
        async with scheduling(app):
            await await_until(is_noticed)
            assert outcomes() == []
            await change_schema(connection, "drop trigger refuse on mainspring.jobs")
            await await_until(lambda: "enqueued" in outcomes())

    assert set(outcomes()) == {"enqueued"}


async def test_figures_that_cannot_be_written_hold_up_nobodys_turn(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, "queued", overlap="queue", every="1 day", cron=None)
    ran = insert_job(connection, JobState.SUCCEEDED)
    connection.execute(RAN, (ran,))
    waiting = insert_job(connection, JobState.QUEUED, waits_for="turn", schedule_id=GONE)
    connection.execute(NO_FIGURES)

    async with scheduling(app):
        await await_until(lambda: job(connection, waiting)["waits_for"] is None)
