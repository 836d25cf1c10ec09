"""Millions of finished jobs, some of them past a short retention: pruning is in nobody's way.

    make soak

Prints how late delayed jobs started while the workers pruned.
"""

import sys

import psycopg
import pytest

from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

ROWS = 3_000_000
QUEUES = ("a", "b")
# What docs/guarantees.md promises is a second; the rest is for a machine with much else to do.
LATEST_SECONDS = 2.0
# One in ten has the short retention; all others are kept.
FILL = """
insert into mainspring.jobs_history
       (job_id, definition, queue, state, attempt, created_at, scheduled_for, started_at,
        finished_at)
select nextval('mainspring.job_ids'), case number %% 10 when 0 then 'brief' else 'do_nothing' end,
       'default', 'succeeded', 1, ended, ended, ended, ended
  from generate_series(1, %s) as number,
       lateral (select now() - interval '40 hours' * (1 - number / %s::float)) as at (ended)
"""
BRIEF = """
insert into mainspring.definitions (key, kind, retention) values ('brief', 'python', '1 hour')
"""
ENQUEUE = """
select mainspring.enqueue('do_nothing', '{"number": 1}', delay => '0.5 s', queue => queue)
  from unnest(%s::text[]) as queue, generate_series(1, 5)
"""
IS_PRUNED = """
select count(*) > 0 from mainspring.prune_marks
 where keep = '1 hour' and pruned_until > now() - interval '70 minutes'
"""
LATENESS = """
select queue, count(*), max(extract(epoch from started_at - scheduled_for))::float
  from mainspring.jobs_history where job_id > %s group by queue order by queue
"""


def test_a_delayed_job_is_late_in_no_worker_while_history_is_pruned(
    connection: psycopg.Connection, start_worker: StartWorker, capsys: pytest.CaptureFixture[str]
):
    connection.execute(BRIEF)
    connection.execute(FILL, (ROWS, ROWS))
    connection.execute("analyze mainspring.jobs_history")
    ((last,),) = connection.execute("select max(job_id) from mainspring.jobs_history").fetchall()
    for queue in QUEUES:
        start_worker("--queues", queue).started(connection)

    asked = 0

    def is_pruned() -> bool:
        nonlocal asked
        connection.execute(ENQUEUE, (list(QUEUES),))
        asked += 5
        wait_until(lambda: started() >= asked, 60, "what was enqueued starts")
        return connection.execute(IS_PRUNED).fetchone() == (True,)

    def started() -> int:
        rows = connection.execute(LATENESS, (last,)).fetchall()
        return min((count for _, count, _ in rows), default=0) if len(rows) == len(QUEUES) else 0

    wait_until(is_pruned, 300, "history is pruned")
    found = connection.execute(LATENESS, (last,)).fetchall()
    ((brief,),) = connection.execute(
        "select count(*) from mainspring.jobs_history where definition = 'brief'"
    ).fetchall()
    with capsys.disabled():
        for queue, count, worst in found:
            sys.stdout.write(
                f"\nworker of queue {queue}: {count} delayed jobs, worst {worst:.3f} s"
            )
        sys.stdout.write("\n")

    assert brief < ROWS / 10
    assert max(worst for *_, worst in found) < LATEST_SECONDS
