"""Limits in the database: what is let go, what is taken back, and what costs nothing."""

from typing import Any

import psycopg
import pytest

from mainspring.domain.types import JobState
from mainspring.store.attempts import ClaimedRow
from tests.support.calls import call, enqueue
from tests.support.rows import insert, insert_definition, insert_job, insert_tenant, job, refused

CLAIM_CAPPED = """
select * from mainspring.claim_limited(
    1, array(select distinct queue from mainspring.jobs where queue <> 'far'), '{capped}', '{""}',
    '{default}', '{10}', 10, 1000)
"""


@pytest.fixture
def limited(tx: psycopg.Connection) -> psycopg.Connection:
    """With a definition `capped` of two at once, and `keyed` of one per `user` and three in all."""
    insert_definition(tx, "capped", concurrency=2)
    insert_definition(tx, "keyed", concurrency=3, key_concurrency=1, limit_by=["user"])
    insert_definition(tx, "paced", rate_count=60, rate_period="1 minute")
    return tx


ALL_KEYS = """
select coalesce(array_agg(limit_name), '{}'), coalesce(array_agg(limit_key), '{}'),
       coalesce(array_agg(tenant_id), '{}')
  from (select distinct limit_name, limit_key, tenant_id from mainspring.jobs
         where waits_for = 'limit') as waiting
"""


def grant(tx: psycopg.Connection, most: int = 1000) -> int:
    """Claim in all rooms where something waits, for a worker of all queues; how many jobs went."""
    insert_worker(tx)
    ((names, keys, tenants),) = tx.execute(ALL_KEYS).fetchall()
    rows = tx.execute(
        "select job_id, facts from mainspring.claim_limited(1,"
        " array(select distinct queue from mainspring.jobs), %s, %s, %s,"
        " array_fill(%s, array[%s]), %s, 1000)",
        (names, keys, tenants, most, len(names), most),
    ).fetchall()
    assert rows[-1][1] is not None
    return len(rows) - 1


def grant_ready(tx: psycopg.Connection) -> int:
    """The same as the release before did it: what goes is ready, and holds its place."""
    insert_worker(tx)
    ((names, keys, tenants),) = tx.execute(ALL_KEYS).fetchall()
    ((is_ours, granted),) = tx.execute(
        "select is_ours, granted from mainspring.grant_places(%s, %s, %s, 1000)",
        (names, keys, tenants),
    ).fetchall()
    assert is_ours
    return int(granted)


def insert_worker(tx: psycopg.Connection) -> None:
    """One that serves all queues of the jobs there are."""
    tx.execute("delete from mainspring.workers where worker_id = 1")
    queues = [row[0] for row in tx.execute("select distinct queue from mainspring.jobs")]
    insert(
        tx,
        "workers",
        worker_id=1,
        expires_at="infinity",
        pid=1,
        concurrency=1,
        name="n",
        host="h",
        process_identity="",
        queues=queues,
        version="0",
    )


def waits(tx: psycopg.Connection, *job_ids: int) -> list[str | None]:
    return [job(tx, job_id)["waits_for"] for job_id in job_ids]


def run(tx: psycopg.Connection, job_id: int) -> None:
    tx.execute(
        "update mainspring.jobs set state = 'running', fence = job_id, worker_id = 1,"
        " started_at = now() where job_id = %s and waits_for is null",
        (job_id,),
    )


def end(tx: psycopg.Connection, job_id: int) -> None:
    tx.execute("delete from mainspring.jobs where job_id = %s", (job_id,))


def bucket(tx: psycopg.Connection) -> Any:
    """Tokens that are missing in the only bucket, to the nearest."""
    ((row,),) = tx.execute(
        "select round(extract(epoch from full_at - clock_timestamp())) from mainspring.buckets"
    ).fetchall()
    return row


# Waiting


def test_a_job_of_a_limit_waits_for_it(limited):
    assert waits(limited, enqueue(limited, "capped")) == ["limit"]


def test_a_job_without_a_limit_waits_for_nothing(limited):
    assert waits(limited, enqueue(limited, "work")) == [None]


def test_a_delayed_job_waits_for_its_time_first(limited):
    job_id = enqueue(limited, "capped", delay="1 hour")
    assert waits(limited, job_id) == ["time"]

    limited.execute("update mainspring.jobs set scheduled_for = now()")
    limited.execute(
        "update mainspring.jobs set waits_for = mainspring.wait_of(limit_name)"
        " where waits_for = 'time' and scheduled_for <= now()"
    )

    assert waits(limited, job_id) == ["limit"]


def test_many_at_once_wait_for_their_limit_with_their_keys(limited):
    call(limited, "enqueue_many", "keyed", ['{"user": 1}', '{"user": "b"}', "{}"])

    rows = limited.execute("select limit_key, waits_for from mainspring.jobs order by job_id")
    assert rows.fetchall() == [("1", "limit"), ("b", "limit"), ("", "limit")]


def test_a_key_may_be_given_with_the_job(limited):
    job_id = enqueue(limited, "keyed", payload='{"user": 1}', limit_key="vip")

    row = limited.execute("select limit_key from mainspring.jobs where job_id = %s", (job_id,))
    assert row.fetchall() == [("vip",)]


def test_a_very_long_key_still_fits_the_index(limited):
    enqueue(limited, "keyed", payload=f'{{"user": "{"x" * 5000}"}}')

    ((key,),) = limited.execute("select limit_key from mainspring.jobs").fetchall()
    assert key.startswith("md5:")
    assert len(key) == 36


def test_a_key_for_a_definition_without_a_limit_is_refused(limited):
    with refused(limited, "MS003", "limit_key is given, but work has no limit", option="limit_key"):
        enqueue(limited, "work", limit_key="vip")


# Granting


def test_as_many_go_as_have_a_place(limited):
    job_ids = [enqueue(limited, "capped") for _ in range(4)]

    assert grant(limited) == 2
    assert waits(limited, *job_ids) == [None, None, "limit", "limit"]
    assert grant(limited) == 0


def test_a_place_that_comes_free_is_given_to_the_next(limited):
    first, second, third = (enqueue(limited, "capped") for _ in range(3))
    grant(limited)
    run(limited, first)
    assert grant(limited) == 0

    end(limited, first)

    assert grant(limited) == 1
    assert waits(limited, second, third) == [None, None]


def test_a_job_that_waits_to_be_retried_holds_no_place(limited):
    first, _, third = (enqueue(limited, "capped") for _ in range(3))
    grant(limited)
    limited.execute(
        "update mainspring.jobs set waits_for = 'time', scheduled_for = now() + interval '1 hour',"
        " state = 'queued', fence = null, worker_id = null where job_id = %s",
        (first,),
    )

    assert grant(limited) == 1
    assert waits(limited, third) == [None]


def test_the_more_urgent_goes_first(limited):
    late, urgent = enqueue(limited, "capped"), enqueue(limited, "capped", priority=1)
    limited.execute("update mainspring.definitions set concurrency = 1 where key = 'capped'")

    assert grant(limited) == 1
    assert waits(limited, late, urgent) == ["limit", None]


def test_a_key_has_places_of_its_own_within_those_of_all(limited):
    users = [1, 1, 2, 3, 4]
    job_ids = [enqueue(limited, "keyed", payload=f'{{"user": {user}}}') for user in users]

    assert grant(limited) == 3
    assert waits(limited, *job_ids) == [None, "limit", None, None, "limit"]


def test_no_more_go_at_once_than_are_asked_for(limited):
    for _ in range(2):
        enqueue(limited, "capped")

    assert grant(limited, most=1) == 1


def test_a_limit_that_is_shared_counts_all_who_share_it(limited):
    call(limited, "set_limit", "openai", concurrency=1)
    for key in ("embed", "chat"):
        insert_definition(limited, key, limit_name="openai")
    job_ids = [enqueue(limited, "embed"), enqueue(limited, "chat")]

    assert grant(limited) == 1
    assert waits(limited, *job_ids) == [None, "limit"]


def test_a_shared_limit_that_nobody_has_set_allows_everything(limited):
    insert_definition(limited, "embed", limit_name="openai")
    for _ in range(5):
        enqueue(limited, "embed")

    assert grant(limited) == 5


def test_while_another_grants_nothing_is_granted(limited, module_url):
    enqueue(limited, "capped")
    with psycopg.connect(module_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")

        row = limited.execute(
            "select is_ours, granted from mainspring.grant_places("
            "'{capped}', '{\"\"}', '{default}', 10)"
        ).fetchone()

    assert row == (False, 0)


def test_while_another_claims_nothing_is_claimed(limited, module_url):
    enqueue(limited, "capped")
    insert_worker(limited)
    with psycopg.connect(module_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")

        rows = limited.execute(CLAIM_CAPPED).fetchall()

    assert rows == []


def test_a_worker_whose_lease_ran_out_claims_nothing(limited):
    job_id = enqueue(limited, "capped")
    insert_worker(limited)
    limited.execute("update mainspring.workers set expires_at = now()")

    assert limited.execute(CLAIM_CAPPED).fetchall() == []
    assert waits(limited, job_id) == ["limit"]


def test_only_jobs_of_the_workers_queues_are_claimed(limited):
    insert_definition(limited, "far", limit_name="capped", queue="far")
    far, near = enqueue(limited, "far"), enqueue(limited, "capped")
    insert_worker(limited)

    limited.execute(CLAIM_CAPPED)

    assert waits(limited, far, near) == ["limit", None]


def test_an_earlier_release_grants_no_place_to_a_queue_that_nobody_serves(limited):
    job_id = enqueue(limited, "capped")
    limited.execute("update mainspring.jobs set queue = 'far'")
    assert grant_ready(limited) == 1
    limited.execute("select mainspring.take_back_places()")
    limited.execute("update mainspring.jobs set queue = 'unserved'")

    granted = limited.execute(
        "select granted from mainspring.grant_places('{capped}', '{\"\"}', '{default}', 10)"
    ).fetchone()

    assert granted == (0,)
    assert waits(limited, job_id) == ["limit"]


def test_what_is_no_more_urgent_than_other_work_is_claimed_by_share(limited):
    ordinary = [enqueue(limited, "keyed", payload=f'{{"user": {n}}}') for n in range(2)]
    late = enqueue(limited, "keyed", payload='{"user": 2}', priority=101)
    urgent = enqueue(limited, "keyed", payload='{"user": 3}', priority=1)
    limited.execute("update mainspring.definitions set concurrency = null where key = 'keyed'")
    insert_worker(limited)

    limited.execute(
        "select mainspring.claim_limited(1, array(select distinct queue from mainspring.jobs),"
        " array_fill('keyed'::text, '{4}'), '{0,1,2,3}', array_fill('default'::text, '{4}'),"
        " array_fill(2, '{4}'), 10, 100)"
    )

    assert waits(limited, *ordinary, late, urgent) == [None, "limit", "limit", None]


def test_a_claimed_job_has_the_columns_of_any_other_claim(limited):
    columns = [column.name for column in limited.execute(CLAIM_CAPPED).description or ()]

    assert columns == [*ClaimedRow._fields[:-1], "definition_version", "facts"]


# Changes


def test_a_raised_limit_lets_more_go(limited):
    job_ids = [enqueue(limited, "capped") for _ in range(4)]
    grant(limited)
    limited.execute("update mainspring.definitions set concurrency = 3 where key = 'capped'")

    assert grant(limited) == 1
    assert waits(limited, *job_ids) == [None, None, None, "limit"]


def test_a_lowered_limit_takes_places_back_from_what_has_not_started(limited):
    first, second, third = (enqueue(limited, "capped") for _ in range(3))
    grant_ready(limited)
    run(limited, second)
    limited.execute("update mainspring.definitions set concurrency = 1 where key = 'capped'")

    assert limited.execute("select mainspring.take_back_places()").fetchone() == (True,)
    assert waits(limited, first, third) == ["limit", "limit"]
    assert grant(limited) == 0


def test_while_another_grants_nothing_is_taken_back(limited, module_url):
    with psycopg.connect(module_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")

        row = limited.execute("select mainspring.take_back_places()").fetchone()

    assert row == (False,)


def test_a_lowered_limit_lets_what_runs_go_on(limited):
    first, second = enqueue(limited, "capped"), enqueue(limited, "capped")
    grant(limited)
    run(limited, first)
    run(limited, second)
    limited.execute("update mainspring.definitions set concurrency = 0 where key = 'capped'")
    limited.execute("select mainspring.take_back_places()")
    grant(limited)

    assert [job(limited, job_id)["state"] for job_id in (first, second)] == ["running", "running"]


def test_a_definition_that_gets_a_limit_brings_its_jobs_under_it(limited):
    ready, delayed = enqueue(limited, "other"), enqueue(limited, "other", delay="1 hour")
    limited.execute("update mainspring.definitions set concurrency = 0 where key = 'other'")

    assert waits(limited, ready, delayed) == ["limit", "time"]
    assert grant(limited) == 0


def test_a_definition_that_loses_its_limit_lets_its_jobs_go(limited):
    job_ids = [enqueue(limited, "capped") for _ in range(4)]
    limited.execute("update mainspring.definitions set concurrency = null where key = 'capped'")

    assert waits(limited, *job_ids) == [None] * 4
    assert limited.execute("select from mainspring.limits where name = 'capped'").fetchone() is None


def test_a_limit_that_is_removed_lets_everything_go(limited):
    call(limited, "set_limit", "openai", concurrency=0)
    insert_definition(limited, "embed", limit_name="openai")
    enqueue(limited, "embed")
    assert grant(limited) == 0

    assert call(limited, "remove_limit", "openai") == [True]

    assert grant(limited) == 1


def test_changes_of_a_limit_are_written_down(limited):
    limited.execute("select set_config('mainspring.actor', 'ann', true)")
    call(limited, "set_limit", "openai", concurrency=1)
    call(limited, "set_limit", "openai", concurrency=2)
    call(limited, "remove_limit", "openai")

    rows = limited.execute(
        "select actor, action, before ->> 'concurrency', after ->> 'concurrency'"
        " from mainspring.audit where noun = 'limit' and subject = 'openai' order by audit_id"
    )
    assert rows.fetchall() == [
        ("ann", "create", None, "1"),
        ("ann", "update", "1", "2"),
        ("ann", "delete", "2", None),
    ]


def test_of_a_changed_limit_only_what_differs_is_written_down(limited):
    call(limited, "set_limit", "openai", concurrency=1)
    call(limited, "set_limit", "openai", concurrency=2)

    row = limited.execute(
        "select before, after from mainspring.audit where noun = 'limit' and action = 'update'"
    ).fetchone()
    assert row == ({"concurrency": 1}, {"concurrency": 2})


@pytest.mark.parametrize(
    ("given", "option", "message"),
    [
        ({"name": "a b"}, "name", "name must start with a letter"),
        ({"name": "a", "concurrency": -1}, "concurrency", "concurrency must be zero or more"),
        ({"name": "a", "rate_count": 0, "rate_period": "1 s"}, "rate", "rate must be a count"),
        ({"name": "a", "rate_count": 1}, "rate", "rate must be a count"),
        ({"name": "a", "burst": 0}, "burst", "burst must be 1 or more"),
        ({"name": "capped"}, "name", "name belongs to a definition with a limit of its own"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(limited, given, option, message):
    with refused(limited, "MS003", message, option=option):
        call(limited, "set_limit", **given)


def test_a_definition_cannot_share_a_limit_and_have_one(tx):
    problem = "names a shared limit, so concurrency, key_concurrency and rate cannot be set"
    with refused(tx, "MS050", "limit names", key="a", field="limit", problem=problem):
        insert_definition(tx, "a", limit_name="openai", concurrency=1)


# Tenants


def test_a_tenant_has_places_of_its_own_for_all_it_does(limited):
    limited.execute("update mainspring.tenants set max_running = 1 where tenant_id = 'acme'")
    own = [enqueue(limited, key, tenant="acme") for key in ("work", "other", "capped")]
    others = [enqueue(limited, "work"), enqueue(limited, "capped")]

    assert grant(limited) == 2
    assert waits(limited, *own) == [None, "limit", "limit"]
    assert waits(limited, *others) == [None, None]


def test_what_a_tenant_has_queued_comes_under_its_cap_at_once(limited):
    job_ids = [enqueue(limited, "work", tenant="acme") for _ in range(3)]
    limited.execute("update mainspring.tenants set max_running = 1 where tenant_id = 'acme'")
    assert waits(limited, *job_ids) == ["limit"] * 3
    assert grant(limited) == 1

    limited.execute("update mainspring.tenants set max_running = null where tenant_id = 'acme'")

    assert waits(limited, *job_ids) == [None] * 3


def test_the_default_tenant_can_have_a_cap_too(limited):
    limited.execute("update mainspring.tenants set max_running = 1 where tenant_id = 'default'")
    job_ids = [enqueue(limited, "work"), enqueue(limited, "other")]

    assert grant(limited) == 1
    assert waits(limited, *job_ids) == [None, "limit"]


def test_limit_and_tenant_are_both_kept(limited):
    limited.execute("update mainspring.tenants set max_running = 1 where tenant_id = 'acme'")
    insert_tenant(limited, "zen")
    for tenant in ("acme", "acme", "zen", "zen", "zen"):
        enqueue(limited, "capped", tenant=tenant)

    assert grant(limited) == 2
    rows = limited.execute(
        "select tenant_id, count(*) from mainspring.jobs where waits_for is null group by 1"
    )
    assert dict(rows.fetchall()) == {"acme": 1, "zen": 1}


# Rates


def take(tx: psycopg.Connection, job_id: int) -> float | None:
    run(tx, job_id)
    ((seconds,),) = tx.execute("select mainspring.take_token(%s, %s)", (job_id, job_id)).fetchall()
    return None if seconds is None else float(seconds)


def test_one_token_lets_one_start(limited):
    first, second = enqueue(limited, "paced"), enqueue(limited, "paced")

    assert grant(limited) == 1
    assert waits(limited, first, second) == [None, "limit"]
    assert grant(limited) == 0
    assert take(limited, first) == 0
    assert bucket(limited) == 1
    assert grant(limited) == 0


def test_a_token_that_has_flowed_in_lets_the_next_start(limited):
    first, second = enqueue(limited, "paced"), enqueue(limited, "paced")
    grant(limited)
    take(limited, first)
    limited.execute("update mainspring.buckets set full_at = now()")

    assert grant(limited) == 1
    assert take(limited, second) == 0


def test_a_job_that_finds_no_token_goes_back_to_wait(limited):
    first, second = enqueue(limited, "paced"), enqueue(limited, "paced")
    grant(limited)
    take(limited, first)
    limited.execute(
        "update mainspring.jobs set waits_for = null, attempt = 1 where job_id = %s", (second,)
    )

    seconds = take(limited, second)

    assert seconds is not None
    assert 0 < seconds <= 1
    row = job(limited, second)
    assert (row["state"], row["waits_for"], row["attempt"]) == ("queued", "limit", 0)


def test_a_full_bucket_lets_a_burst_start_and_no_more(limited):
    limited.execute("update mainspring.definitions set burst = 3 where key = 'paced'")
    job_ids = [enqueue(limited, "paced") for _ in range(5)]

    assert grant(limited) == 3
    assert [take(limited, job_id) for job_id in job_ids[:3]] == [0, 0, 0]
    assert grant(limited) == 0


def test_keys_have_buckets_of_their_own(limited):
    limited.execute("update mainspring.definitions set limit_by = '{user}' where key = 'paced'")
    for user in (1, 1, 2):
        enqueue(limited, "paced", payload=f'{{"user": {user}}}')

    assert grant(limited) == 2


def test_a_token_is_for_the_newest_lease_only(limited):
    job_id = enqueue(limited, "paced")
    grant(limited)
    run(limited, job_id)

    row = limited.execute("select mainspring.take_token(%s, %s)", (job_id, job_id + 1)).fetchone()

    assert row == (None,)


# What frees a place


def test_canceling_a_job_that_holds_a_place_wakes_who_grants(limited, module_url):
    first = enqueue(limited, "capped")
    grant_ready(limited)

    assert call(limited, "cancel", first) == ["canceled"]
    assert grant(limited) == 0


def test_an_ended_job_can_be_retried_into_its_limit(limited):
    job_id = insert_job(limited, JobState.FAILED, definition="capped")

    call(limited, "retry", job_id)

    assert waits(limited, job_id) == ["limit"]
