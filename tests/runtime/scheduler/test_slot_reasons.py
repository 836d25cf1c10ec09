"""What a slot and the log say about runs and checks that did not go well."""

from collections.abc import Mapping, Sequence
from typing import Any

from mainspring.testing import adrain
from tests.support.log_lines import captured_lines
from tests.support.schedules import (
    SECOND,
    insert_due,
    insert_schedule,
    is_planned,
    make_due,
    scheduling,
    slots,
)
from tests.support.waiting import await_until


def said(logs: Sequence[Mapping[str, Any]], event: str) -> list[Mapping[str, Any]]:
    return [log for log in logs if log["event"] == event]


async def test_a_run_that_succeeds_at_last_no_longer_says_why_it_failed(app, connection):
    broken = [True]

    @app.job
    async def work() -> None:
        if broken:
            raise RuntimeError("not yet")

    insert_schedule(connection, max_attempts=1)
    done = await app.schedules.atrigger("tick")
    await adrain(app, with_errors="collect")
    (failed,) = slots(connection)
    broken.clear()
    await app.jobs.aretry(done.job_id)
    await adrain(app)
    (mended,) = slots(connection)

    assert failed["run_state"] == "dead_letter"
    assert failed["reason"].startswith("RuntimeError: not yet")
    assert (mended["run_state"], mended["reason"]) == ("succeeded", None)


async def test_only_a_failure_that_disables_a_schedule_is_logged_as_that(app, connection):
    insert_schedule(connection, condition_sql="select 1 / 0", max_retries=1)
    with captured_lines() as logs:
        async with scheduling(app):
            await await_until(lambda: is_planned(connection))
            await app.schedules.atrigger("tick", wait=10 * SECOND)
            make_due(connection)
            await await_until(lambda: said(logs, "schedule_disabled"))

    assert len(said(logs, "schedule_failed")) == 2
    assert len(said(logs, "schedule_disabled")) == 1


async def test_the_log_says_what_the_slot_says_of_a_definition(app, connection):
    insert_due(connection, definition="gone")
    with captured_lines() as logs:
        async with scheduling(app):
            (failed,) = await await_until(lambda: said(logs, "schedule_failed"))

    assert failed["error"] == "unknown definition 'gone'"
    assert connection.execute("select reason from mainspring.slots").fetchone() == (
        failed["error"],
    )
