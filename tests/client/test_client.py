"""The client: every noun, lists by iteration, jobs that are followed, and what is asked again."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
import pytest

from mainspring import ApiError, AsyncClient, Client
from mainspring.api.models.base import Page
from mainspring.api.models.jobs import StateModel
from mainspring.client.requests import Message, Response, TransportError, read_as
from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.client import ServerUnreachable
from mainspring.domain.types import JobState


def test_a_job_is_enqueued_listed_canceled_retried_and_deleted(client: Client):
    made = client.jobs.enqueue("work", {"n": 1}, delay=timedelta(hours=1), tags=["a"])

    job = client.jobs.get(made.id)
    assert (made.is_new, job.payload, job.tags) == (True, {"n": 1}, ["a"])
    assert job.scheduled_for - job.created_at == timedelta(hours=1)
    assert client.jobs.cancel(made.id, "no").state is JobState.CANCELED
    assert client.jobs.retry(made.id, {"n": 2}).state is JobState.QUEUED
    assert list(client.jobs.attempts(made.id)) == []
    client.jobs.delete(made.id)
    with pytest.raises(ApiError, match="there is no job") as refused:
        client.jobs.get(made.id)
    assert (refused.value.status, refused.value.said) == (404, "job_not_found")


def test_a_list_goes_through_all_pages(client: Client):
    ids = client.jobs.enqueue_many("work", [{"n": n} for n in range(25)]).ids

    listed = [job.id for job in client.jobs.list(limit=10)]

    assert listed == list(reversed(ids))
    assert len(client.jobs.page(limit=10).items) == 10
    assert [job.id for job in client.jobs.list(state=JobState.FAILED)] == []
    alternatives = client.jobs.list(state=[JobState.FAILED, "queued"], limit=10)
    assert [job.id for job in alternatives] == listed
    assert client.jobs.summary().counts[JobState.QUEUED] == 25


def test_many_jobs_are_counted_and_moved_by_filter(client: Client):
    ids = client.jobs.enqueue_many("work", [{}, {}, {}], tags=["blue"]).ids

    counted = client.jobs.bulk("cancel", dry_run=True, state=JobState.QUEUED, tag="blue")
    started = client.jobs.bulk("cancel", all=True, reason="all of it")

    assert (counted.count, counted.is_exact, counted.job_id) == (3, True, None)
    assert started.job_id is not None
    assert started.job_id > max(ids)
    job = client.jobs.get(started.job_id)
    assert (job.definition, job.payload["reason"]) == ("mainspring.bulk", "all of it")
    with pytest.raises(ApiError, match="filter is empty") as refused:
        client.jobs.bulk("delete")
    assert (refused.value.status, refused.value.said) == (422, "invalid_option")


def test_a_job_is_followed_until_it_ends(client: Client, connection: psycopg.Connection):
    made = client.jobs.enqueue("work")
    seen = client.jobs.follow(made.id)
    assert next(seen).job.state is JobState.QUEUED

    timer = threading.Timer(0.1, lambda: client.jobs.cancel(made.id))
    timer.start()

    assert [told.job.state for told in seen] == [JobState.CANCELED]


def test_every_noun_can_be_made_read_changed_and_removed(client: Client):
    schedule = client.schedules.create(
        "nightly", "work", cron="0 2 * * *", jitter=timedelta(minutes=1)
    )
    assert schedule.jitter == timedelta(minutes=1)
    assert client.schedules.update("nightly", cron="0 3 * * *").cron == "0 3 * * *"
    assert client.schedules.disable("nightly", "why").disabled_reason == "why"
    assert client.schedules.enable("nightly").is_enabled
    assert len(client.schedules.preview("nightly", count=3)) == 3
    assert client.schedules.trigger("nightly").job_id is not None
    assert len(list(client.schedules.history("nightly"))) == 1
    now = datetime.now(UTC)
    filled = client.schedules.backfill("nightly", now - timedelta(days=3), now, dry_run=True)
    assert len(filled) == 3
    client.schedules.delete("nightly")
    assert list(client.schedules.list()) == []

    trigger = client.triggers.create(
        "on", event="a.*", definition="work", payload={"x": "{{event.x}}"}
    )
    assert trigger.is_enabled
    assert client.triggers.test("on", {"x": 5}) == {"x": 5}
    assert not client.triggers.disable("on").is_enabled
    event = client.events.emit("a.b", {"x": 1})
    assert client.events.get(event.id).name == "a.b"
    client.triggers.delete("on")

    flow = client.flows.start(
        "two",
        [{"step": "a", "definition": "work"}, {"step": "b", "definition": "work", "after": ["a"]}],
    )
    assert [job.step for job in client.flows.jobs(flow.id)] == ["a", "b"]
    assert client.flows.cancel(flow.id).jobs == 2

    assert client.limits.set("shared", concurrency=2).concurrency == 2
    client.limits.remove("shared")
    assert client.tenants.create("bell", weight=2).weight == 2
    assert client.tenants.update("bell", weight=3).weight == 3
    assert client.people.create("eve", "operator").name == "eve"
    assert "/login?code=" in client.people.open_login("eve").url
    client.people.delete("eve")
    token = client.tokens.create("ci", "operator")
    with Client(client.url, token.token) as other:
        assert other.me().actor == "ci"
    assert client.tokens.revoke("ci").state == "revoked"
    assert client.me().role == "operator"
    assert client.workers() == []
    assert [queue.name for queue in client.queues()] == ["default"]
    assert next(client.audit(noun="token")).action == "revoke"


NAMES = ["a/b", "..", "50% off?", "#1", "%2F", "Grüße & ☃"]


def test_a_name_may_hold_anything(client: Client):
    for name in NAMES:
        client.schedules.create(name, "work", every=timedelta(hours=1))

    assert [client.schedules.get(name).name for name in NAMES] == NAMES
    assert [client.schedules.disable(name).name for name in NAMES] == NAMES
    with pytest.raises(ApiError, match="unknown definition 'a/b'"):
        client.definitions.get("a/b")
    with pytest.raises(InvalidOption, match="name must not be empty"):
        client.limits.get("")


def test_a_list_begins_after_a_name_or_before_an_id_or_an_instant(client: Client):
    for name in ("a", "b", "c"):
        client.schedules.create(name, "work", every=timedelta(hours=1), overlap="queue")
        client.flows.start(name, [{"step": "x", "definition": "work"}])
    slots = [client.schedules.trigger("a").slot_at for _ in range(3)]
    first, *_, newest = client.flows.list(limit=1)

    assert [each.name for each in client.schedules.list(after="a", limit=1)] == ["b", "c"]
    assert [each.name for each in client.flows.list(before=first.id)] == ["b", "a"]
    assert list(client.flows.list(before=newest.id)) == []
    history = client.schedules.history("a", before=slots[2], limit=1)
    assert [slot.scheduled_for for slot in history] == [slots[1], slots[0]]
    keys = [each.key for each in client.definitions.list()]
    assert [each.key for each in client.definitions.list(after=keys[0])] == keys[1:]


def test_a_schedule_tells_its_next_run_before_a_scheduler_has_planned_it(client: Client):
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    made = client.schedules.create("daily", "work", every=timedelta(days=1), paused_until=until)

    assert made.next_run_at is not None
    assert timedelta(0) <= made.next_run_at - until <= timedelta(days=1)
    assert (made.paused_until, made.figures.last_run_at) == (until, None)
    assert client.schedules.disable("daily").next_run_at is None


def test_an_approval_is_given(client: Client):
    made = client.jobs.enqueue("work", approvals_needed=1)

    assert [each.job_id for each in client.approvals.list()] == [made.id]
    assert client.approvals.approve(made.id, "fine").state is JobState.QUEUED


def test_a_list_begins_after_or_before_something(client: Client):
    jobs = [client.jobs.enqueue("work", approvals_needed=1).id for _ in range(3)]
    events = [client.events.emit("a").id for _ in range(3)]
    for name in ("b", "c"):
        client.tenants.create(name)
        client.people.create(name, "operator")
        client.tokens.create(name, "operator")
        client.triggers.create(name, event="a", definition="work")

    assert [each.job_id for each in client.approvals.list(after=jobs[0], limit=1)] == jobs[1:]
    assert [each.id for each in client.events.list(before=events[2], limit=1)] == events[1::-1]
    for nouns in (client.tenants, client.people, client.tokens, client.triggers):
        assert "c" in {each.name for each in nouns.list(after="b", limit=1)}
        assert "b" not in {each.name for each in nouns.list(after="b", limit=1)}


def test_what_is_empty_but_no_object_is_not_taken_for_nothing(client: Client):
    with pytest.raises(ApiError, match=r"body\.payload"):
        client.jobs.enqueue("work", [])  # type: ignore[arg-type]
    with pytest.raises(ApiError, match=r"body\.context"):
        client.events.emit("a", [])  # type: ignore[arg-type]


def test_a_name_is_one_part_of_a_path(client: Client):
    client.people.create("ann lee", "operator")

    assert client.people.get("ann lee").name == "ann lee"
    with pytest.raises(ApiError, match=r"there is no person 'ann\?x=1'"):
        client.people.get("ann?x=1")


async def test_the_async_client_does_the_same(server: tuple[str, str]):
    async with AsyncClient(*server) as client:
        made = await client.jobs.enqueue("work", {"n": 1})
        assert [job.id async for job in client.jobs.list()] == [made.id]
        states = []
        async for told in client.jobs.follow(made.id):
            states.append(told.job.state)
            await client.jobs.cancel(made.id)
        assert states == [JobState.QUEUED, JobState.CANCELED]
        assert (await client.me()).role == "operator"


class Flaky:
    """A server that does not answer at first."""

    def __init__(self, failures: int, status: int | None = None) -> None:
        self.failures, self.status = failures, status
        self.asked: list[Message] = []

    def send(self, message: Message) -> Response:
        self.asked.append(message)
        if len(self.asked) <= self.failures:
            if self.status is None:
                raise TransportError("refused")
            return Response(self.status, {"retry-after": "0"}, b"")
        return Response(201, {}, orjson.dumps({"id": "7", "is_new": True, "job": None}))

    def stream(self, message: Message) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Fixed(Flaky):
    """A server that always answers the same."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(0)
        self.answer = Response(status, {}, text.encode())

    def send(self, message: Message) -> Response:
        return self.answer


def test_a_trigger_may_take_as_long_as_it_waits():
    transport = Flaky(0)
    client = Client("http://server", "msk", timeout=5, transport=transport)
    with pytest.raises(ApiError, match="not like a Mainspring server"):
        client.schedules.trigger("nightly", wait=30)

    assert transport.asked[0].timeout == 35


@pytest.mark.parametrize("status", [None, 503, 429])
def test_what_is_safe_is_asked_again_under_the_same_key(status: int | None):
    transport = Flaky(2, status)
    client = Client("http://server", "msk", transport=transport)

    assert client.jobs.enqueue("work").id == 7
    keys = {message.headers["Idempotency-Key"] for message in transport.asked}
    assert (len(transport.asked), len(keys)) == (3, 1)


def test_what_is_not_safe_is_asked_once():
    transport = Flaky(1)
    client = Client("http://server", "msk", transport=transport)

    with pytest.raises(ServerUnreachable, match="cannot reach http://server"):
        client.jobs.retry(7)
    assert len(transport.asked) == 1


def test_a_server_that_stays_away_is_given_up():
    transport = Flaky(100)
    client = Client("http://server", "msk", transport=transport)

    with pytest.raises(ServerUnreachable):
        client.jobs.get(7)
    assert len(transport.asked) == 4


@pytest.mark.parametrize("status", [404, 200])
@pytest.mark.parametrize("text", ["<html>", '{"id": "7"}', "[]"])
def test_an_answer_that_is_not_ours_is_told_as_such(status: int, text: str):
    client = Client("http://server", "msk", transport=Fixed(status, text))

    with pytest.raises(
        ApiError, match=f"answered {status}, but not like a Mainspring server"
    ) as caught:
        client.jobs.get(7)
    assert (caught.value.status, caught.value.said) == (status, "unknown_answer")


def test_a_newer_server_may_say_more_at_any_depth():
    answer = {
        "items": [{"id": "7", "state": "canceled", "shade": "blue"}],
        "next_cursor": None,
        "count": 1,
    }

    page = read_as(Page[StateModel], orjson.dumps(answer))

    assert page == Page(items=[StateModel(id=7, state=JobState.CANCELED)], next_cursor=None)
