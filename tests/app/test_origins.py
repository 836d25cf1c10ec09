"""Where a job came from, as code says it and as Mainspring knows it."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from mainspring import Context, Mainspring
from mainspring.domain.errors import InvalidOption
from mainspring.testing import adrain
from tests.support.schedules import scheduling
from tests.support.waiting import await_until


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


@pytest.fixture
def work(app: Mainspring) -> Any:
    @app.job
    async def work(number: int = 1) -> int:
        return number

    return work


GIVEN: dict[str, Any] = {"created_by": "ada", "source": "checkout"}


@pytest.mark.parametrize("given", [GIVEN, {**GIVEN, "dedupe_key": "k"}])
async def test_an_enqueue_says_on_whose_behalf_and_where_from(app, work, given):
    job = await (await work.options(**given).aenqueue()).ajob()

    assert (job.created_by, job.source) == ("ada", "checkout")


async def test_bulk_enqueues_and_flows_say_it_too(app, work):
    many = await app.aenqueue_many(work, [{}] * 300, **GIVEN)
    flow = app.flow("f")
    step = flow.add(work.options(**GIVEN))
    handle = await flow.aenqueue()

    for job_id in (many[0], many[-1], handle.jobs[step].id):
        job = await app.jobs.aget(job_id)
        assert (job.created_by, job.source) == ("ada", "checkout")


async def test_a_creator_that_code_names_has_not_used_the_api(app, work):
    named = await (await work.aenqueue(created_by="ada")).ajob()
    plain = await (await work.aenqueue()).ajob()

    assert (named.source, plain.source, plain.created_by) == ("code", "code", None)


async def test_it_is_said_on_the_callers_own_connection(app, work, database_url):
    app.register_definitions()
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        handle = await work.aenqueue(connection=connection, **GIVEN)

    assert (await handle.ajob()).created_by == "ada"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("created_by", ""),
        ("created_by", 7),
        ("created_by", "system:scheduler:x"),
        ("created_by", "trigger:x"),
        ("created_by", "job:7"),
        ("created_by", "x" * 501),
        ("source", ""),
        ("source", "Check Out"),
        ("source", "schedule"),
        ("source", "x" * 51),
        ("delivery", "exactly_once"),
    ],
)
async def test_what_it_may_not_say_is_refused_by_name(app, work, option, value):
    with pytest.raises(InvalidOption, match=f"^{option} must"):
        await work.options(**{option: value}).aenqueue()


async def test_a_follow_up_says_which_job_enqueued_it(app, work):
    @app.job
    async def first(ctx: Context) -> None:
        await ctx.aenqueue(work, number=2)
        await ctx.aenqueue(work.options(created_by="ada"), number=3)

    handle = await first.aenqueue()
    await adrain(app)

    named, follow_up = await app.jobs.alist(definition="work")
    assert (follow_up.created_by, follow_up.source) == (f"job:{handle.id}", "job")
    assert (named.created_by, named.source) == ("ada", "code")


# What Mainspring knows of it


async def test_a_job_of_a_schedule_names_it_and_its_slot(app, work):
    await app.schedules.acreate("nightly", work, cron="@daily")
    fired = await app.schedules.atrigger("nightly")

    job = await app.jobs.aget(fired.job_id)

    assert (job.schedule, job.slot_at, job.source) == ("nightly", fired.slot_at, "schedule")
    assert job.created_by == "system:scheduler:nightly"


async def test_a_renamed_or_deleted_schedule_is_still_named(app, work):
    await app.schedules.acreate("nightly", work, cron="@daily")
    fired = await app.schedules.atrigger("nightly")
    await app.schedules.aupdate("nightly", name="nocturnal")
    renamed = await app.jobs.aget(fired.job_id)
    await app.schedules.adelete("nocturnal")

    assert renamed.schedule == "nocturnal"
    assert (await app.jobs.aget(fired.job_id)).schedule == "nightly"


async def test_a_job_of_an_event_names_it_and_its_trigger(app, work):
    await app.triggers.acreate("on-upload", event="file.uploaded", definition=work)
    event_id = await app.events.aemit("file.uploaded", {})
    async with scheduling(app):
        (job,) = await await_until(lambda: app.jobs.alist(definition="work"))

    assert (job.trigger, job.event_id, job.source) == ("on-upload", event_id, "trigger")
    assert job.created_by == "trigger:on-upload"


async def test_a_job_of_a_flow_names_it_and_its_parents(app, work):
    flow = app.flow("f")
    first, second = flow.add(work), flow.add(work)
    last = flow.add(work).after(first, second)
    made = await flow.aenqueue()

    job = await made.jobs[last].ajob()

    assert job.flow_id == made.id
    assert job.parent_ids == (made.jobs[first].id, made.jobs[second].id)


async def test_a_running_job_names_its_worker_and_every_job_its_version(app):
    seen: list[Any] = []

    @app.job
    async def look(ctx: Context) -> None:
        seen.append(await app.jobs.aget(ctx.job_id))

    handle = await look.aenqueue()
    await adrain(app)

    (job,) = seen
    (attempt,) = await app.jobs.aattempts(handle.id)
    assert (str(job.worker_id), job.definition_version) == (attempt.worker, 1)
    assert (await handle.ajob()).worker_id == job.worker_id


# Found by it


async def ids(app: Mainspring, **filters: Any) -> list[int]:
    return [job.id for job in await app.jobs.alist(**filters)]


async def test_jobs_are_found_by_their_schedule_and_slot(app, work):
    for name in ("nightly", "hourly"):
        await app.schedules.acreate(name, work, cron="@daily", overlap="queue")
    first, second = [await app.schedules.atrigger("nightly") for _ in range(2)]
    other = await app.schedules.atrigger("hourly")
    await adrain(app)

    assert await ids(app, schedule="nightly") == [second.job_id, first.job_id]
    assert await ids(app, schedule="nightly", slot_at=first.slot_at) == [first.job_id]
    assert len(await ids(app, schedule=["nightly", "hourly"])) == 3
    assert await ids(app, created_by="system:scheduler:hourly") == [other.job_id]
    assert await ids(app, schedule="nightly", limit=1) == [second.job_id]
    assert await ids(app, schedule="nightly", before=second.job_id) == [first.job_id]
    await app.schedules.adelete("hourly")
    assert await ids(app, schedule="hourly") == [other.job_id]


async def test_jobs_are_found_by_their_flow_and_parents(app, work):
    @app.job
    async def follow(ctx: Context) -> None:
        await ctx.aenqueue(work)

    flow = app.flow("f")
    first = flow.add(follow)
    last = flow.add(work).after(first)
    made = await flow.aenqueue()
    one, two = made.jobs[first].id, made.jobs[last].id
    await work.aenqueue()
    await adrain(app)

    (follow_up,) = await ids(app, source="job")
    assert await ids(app, flow_id=made.id) == [two, one]
    assert await ids(app, flow_id=made.id, limit=1) == [two]
    assert await ids(app, flow_id=made.id, before=two) == [one]
    assert await ids(app, parent_id=one) == [follow_up, two]
    assert await ids(app, parent_id=one, flow_id=made.id) == [two]
    assert await ids(app, flow_id=made.id, definition="work") == [two]
    assert await ids(app, flow_id=made.id + 1) == []


async def test_jobs_are_found_by_their_event_and_trigger(app, work):
    await app.triggers.acreate("on-upload", event="file.uploaded", definition=work)
    first, second = [await app.events.aemit("file.uploaded", {}) for _ in range(2)]
    async with scheduling(app):
        await await_until(lambda: _are(app, 2))

    both = await ids(app, trigger="on-upload")
    assert len(both) == 2
    assert await ids(app, event_id=first) + await ids(app, event_id=second) == sorted(both)
    assert await ids(app, trigger="another") == []


async def _are(app: Mainspring, count: int) -> bool:
    return len(await app.jobs.alist()) == count


async def test_jobs_are_found_by_the_worker_that_runs_them_and_by_their_version(app, work):
    found: list[list[int]] = []

    @app.job
    async def look(ctx: Context) -> None:
        job = await app.jobs.aget(ctx.job_id)
        found.append(await ids(app, worker_id=job.worker_id))

    handle = await look.aenqueue()
    await adrain(app)

    assert found == [[handle.id]]
    assert await ids(app, definition="look", definition_version=1) == [handle.id]
    assert await ids(app, definition="look", definition_version=2) == []


@pytest.mark.parametrize("given", [{"flow_id": "x"}, {"event_id": True}, {"worker_id": -1}])
async def test_a_number_that_is_none_is_refused_by_name(app, given):
    (name,) = given
    with pytest.raises(InvalidOption, match=f"^{name} must be a whole number"):
        await app.jobs.alist(**given)
