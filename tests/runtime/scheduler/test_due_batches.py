"""More schedules due at once than one set holds: read on, fired side by side, each once."""

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.runtime.scheduler import due_batches
from tests.support import rows, schedules
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

BATCH = 10
ADD = """
insert into mainspring.schedules (name, definition, cron, overlap)
select 'nightly ' || number, 'work', (array['0 3 * * *', '0 4 * * *'])[number %% 2 + 1], 'queue'
  from generate_series(1, %s) as number
"""
DUE = "update mainspring.schedules set run_at = now() - interval '1 second'"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_batches, "_BATCH", BATCH)


@pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 7 * BATCH + 3])
async def test_all_that_are_due_fire_once(
    app: Mainspring, connection: psycopg.Connection, count: int
):
    schedules.insert_schedule(connection, enabled=False)
    connection.execute(ADD, (count,))
    async with scheduling(app):
        await await_until(lambda: schedules.is_resting(connection))
        connection.execute(DUE + " where enabled")
        await await_until(lambda: rows.count(connection, "slots") == count)
        await await_until(lambda: schedules.is_resting(connection))

    assert rows.count(connection, "slots") == rows.count(connection, "jobs") == count
    revisions = "select distinct revision, enqueued_count from mainspring.clocks where revision > 0"
    assert connection.execute(revisions).fetchall() == [(3, 1)]


async def test_a_batch_that_cannot_be_written_as_a_set_is_written_one_by_one(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, enabled=False)
    connection.execute(ADD, (3 * BATCH,))
    async with scheduling(app):
        await await_until(lambda: schedules.is_resting(connection))
        with connection.transaction():
            connection.execute(DUE + " where enabled")
            connection.execute(
                "insert into mainspring.slots (schedule_id, scheduled_for, outcome)"
                " select schedule_id, next_slot_at, 'skipped' from mainspring.clocks"
                " order by schedule_id desc limit 1"
            )
        await await_until(lambda: rows.count(connection, "slots") == 3 * BATCH)

    assert rows.count(connection, "jobs") == 3 * BATCH - 1
