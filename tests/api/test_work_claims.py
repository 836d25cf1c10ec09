"""/work: what a worker over HTTP is given, and what it is not."""

import asyncio

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.claiming.budgets import CLAIM_BYTES
from tests.support.api import Api
from tests.support.waiting import await_until
from tests.support.work import claim, define_remote, enqueue, register, state_of, told

# A worker that waits has looked for jobs.
LOOKED = "select from pg_stat_activity where pid <> pg_backend_pid() and query like '%skip locked%'"
# What nobody can read.
UNREADABLE = {
    "of an unknown key": '{"$mainspring": "encrypted", "key": "1f0c9a2e", "value": "AAAA"}',
    "with a key that is no text": '{"$mainspring": "encrypted", "key": ["x"], "value": "AAAA"}',
    "with nothing in it": '{"$mainspring": "encrypted"}',
    "nested too deep": "[" * 230 + "]" * 230,
    "nested beyond every reader": "[" * 1100 + "]" * 1100,
}


@pytest.fixture(autouse=True)
def remote(api: Api, connection: psycopg.Connection) -> None:
    define_remote(connection)


async def test_a_claim_waits_for_a_job(api: Api):
    worker = await register(api)
    waiting = asyncio.create_task(claim(api, worker, wait=10))
    await asyncio.sleep(0)

    job_id = await enqueue(api)

    assert [job["job_id"] for job in await waiting] == [job_id]


async def test_jobs_it_does_not_know_wait_for_someone_who_does(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    worker = await register(api)

    assert await claim(api, worker, definitions=["other"]) == []
    assert (await api.get(f"/jobs/{job_id}")).json()["waits_for"] == "handler"
    assert [job["job_id"] for job in await claim(api, worker)] == [job_id]


@pytest.mark.parametrize("role", [Role.WORKER, Role.OPERATOR])
async def test_what_comes_with_mainspring_is_left_to_its_own_workers(api: Api, role: Role):
    worker = await register(api, role=role)

    queue = await told(
        api, "POST", "/workers", {"name": "w", "queues": ["far", "mainspring"]}, role=role
    )
    asked = {"definitions": ["remote", "mainspring.bulk"]}
    definition = await told(api, "POST", f"{worker}/claim", asked, role=role)

    for answer, refused in ((queue, "queues"), (definition, "definitions")):
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] == "invalid_option"
        assert answer.json()["detail"].startswith(f"{refused} cannot contain mainspring")


async def test_a_worker_gets_the_jobs_of_its_tenant_alone(api: Api):
    theirs = await api.post("/jobs", {"definition": "remote"}, params={"tenant": "acme"})
    own = await enqueue(api)
    worker = await register(api)

    jobs = await claim(api, worker)
    other = await told(api, "POST", f"{worker}/heartbeat", tenant="acme")

    assert [job["job_id"] for job in jobs] == [own]
    assert await state_of(api, own) == "running"
    assert theirs.status_code == 201
    assert (other.status_code, other.json()["code"]) == (409, "worker_gone")


async def test_a_place_of_a_limit_and_the_jobs_that_come_after_are_let_go(
    api: Api, connection: psycopg.Connection
):
    first = await enqueue(api)
    second = await enqueue(api, after=[first])
    worker = await register(api)
    (job,) = await claim(api, worker)

    await told(api, "POST", f"{worker}/jobs/{first}/complete", {"fence": job["fence"]})

    assert [each["job_id"] for each in await claim(api, worker, wait=5)] == [second]


async def test_a_claim_whose_answer_was_lost_is_answered_again(api: Api):
    """The worker names what it has, and gets what it holds besides."""
    known, lost = await enqueue(api), await enqueue(api, tags=["a"])
    worker = await register(api)
    (first,) = await claim(api, worker, limit=1)
    (unread,) = await claim(api, worker, limit=1)
    later = await enqueue(api)

    repeated = await claim(api, worker, held=[known])
    nothing_lost = await claim(api, worker, held=[known, lost])

    assert (first["job_id"], unread["job_id"]) == (known, lost)
    assert repeated == [unread]
    assert [job["job_id"] for job in nothing_lost] == [later]


async def test_a_worker_that_does_not_say_what_it_has_gets_new_jobs_only(api: Api):
    await enqueue(api)
    worker = await register(api)

    assert len(await claim(api, worker)) == 1
    assert await claim(api, worker) == []


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_a_job_that_cannot_be_read_fails_alone(
    api: Api, connection: psycopg.Connection, kind: str
):
    """Such a row may be from before it was refused, or from SQL."""
    before, bad, after = [await enqueue(api) for _ in range(3)]
    connection.execute(
        "update mainspring.jobs set payload = jsonb_build_object('n', %s::jsonb) where job_id = %s",
        (UNREADABLE[kind], bad),
    )
    worker = await register(api)

    jobs = await claim(api, worker)

    assert [job["job_id"] for job in jobs] == [before, after]
    at = f"{worker}/jobs/{after}"
    done = await told(api, "POST", f"{at}/complete", {"fence": jobs[1]["fence"]})
    assert done.status_code == 200, done.text
    ((failures, error),) = connection.execute(
        "select failures, last_error from mainspring.all_jobs where job_id = %s", (bad,)
    ).fetchall()
    assert failures == 1
    assert "payload" in error


async def test_a_waiting_worker_gets_nothing_once_its_token_is_revoked(
    api: Api, connection: psycopg.Connection
):
    worker = await register(api)
    asked = {"definitions": ["remote"], "limit": 10, "wait": 20}
    waiting = asyncio.create_task(told(api, "POST", f"{worker}/claim", asked))
    await await_until(lambda: connection.execute(LOOKED).fetchone() is not None)

    connection.execute("update mainspring.tokens set revoked_at = now() where role = 'worker'")
    job_id = await enqueue(api)
    answer = await waiting

    assert answer.status_code == 401
    assert await state_of(api, job_id) == "queued"


async def test_what_was_claimed_for_a_revoked_token_is_handed_back(
    api: Api, connection: psycopg.Connection
):
    worker = await register(api)
    job_id = await enqueue(api)
    connection.execute("update mainspring.tokens set revoked_at = now() where role = 'worker'")

    answer = await told(api, "POST", f"{worker}/claim", {"definitions": ["remote"], "limit": 10})

    assert answer.status_code == 401
    assert "payload" not in answer.text
    assert await state_of(api, job_id) == "queued"
    assert (await api.get(f"/jobs/{job_id}")).json()["attempt"] == 0


# Bytes

LARGE = "x" * 800_000


def enqueue_large(connection: psycopg.Connection, count: int) -> None:
    connection.execute(
        "insert into mainspring.jobs (definition, queue, payload)"
        " select 'remote', 'far', jsonb_build_object('x', %s::text) from generate_series(1, %s)",
        (LARGE, count),
    )


async def test_an_answer_has_a_bounded_size_and_no_job_is_lost(
    api: Api, connection: psycopg.Connection
):
    enqueue_large(connection, 22)
    worker = await register(api)
    asked = {"definitions": ["remote"], "limit": 1000, "held": []}
    seen: list[str] = []

    while jobs := (answer := await told(api, "POST", f"{worker}/claim", asked)).json()["jobs"]:
        assert len(answer.content) <= CLAIM_BYTES
        assert {job["attempt"] for job in jobs} == {1}
        seen += [job["job_id"] for job in jobs]
        asked["held"] = seen

    assert len(seen) == len(set(seen)) == 22
    assert seen == sorted(seen, key=int)


async def test_jobs_whose_answer_was_lost_come_again_within_the_budget(
    api: Api, connection: psycopg.Connection
):
    enqueue_large(connection, 8)
    worker = await register(api)
    first = [job["job_id"] for job in await claim(api, worker, held=[])]
    second = [job["job_id"] for job in await claim(api, worker, held=first)]

    again = [job["job_id"] for job in await claim(api, worker, held=[])]
    rest = [job["job_id"] for job in await claim(api, worker, held=again)]

    assert (again, rest) == (first, second)
    assert len(first) == 5


async def test_a_job_that_is_larger_than_the_budget_is_claimed_alone(
    api: Api, connection: psycopg.Connection
):
    connection.execute(
        "insert into mainspring.jobs (definition, queue, payload)"
        " select 'remote', 'far', jsonb_build_object('x', repeat('x', %s)) from (values (1), (2))"
        " as two",
        (CLAIM_BYTES + 1,),
    )
    worker = await register(api)

    first, second = await claim(api, worker), await claim(api, worker)

    assert (len(first), len(second)) == (1, 1)
