"""Streams: what changes reaches who watches, once for all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
import psycopg
import pytest

from mainspring import Context, Mainspring
from mainspring.api.server import Server
from mainspring.domain.access.roles import Role
from mainspring.services import tokens
from tests.support.api import Api
from tests.support.waiting import await_until
from tests.support.workers import working


@dataclass
class Event:
    """One event of a stream."""

    name: str
    id: str | None
    data: Any


@pytest.fixture
async def server(api: Api) -> AsyncIterator[str]:
    """The API on a port; its address."""
    running = Server(api.app, host="127.0.0.1", port=0)
    task = asyncio.create_task(running.run())
    yield running.url
    running.stop()
    await task


@asynccontextmanager
async def watching(
    api: Api, server: str, path: str, *, role: Role = Role.ADMIN, known: str | None = None
) -> AsyncIterator[AsyncIterator[Event]]:
    token = api.tokens["default", role]
    given = {"Authorization": f"Bearer {token}"}
    if known is not None:
        given["Last-Event-ID"] = known
    async with (
        httpx.AsyncClient(base_url=server, timeout=10) as client,
        client.stream("GET", f"/api/v1{path}", headers=given) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer)


async def _events(answer: httpx.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["event"], fields.get("id"), orjson.loads(fields["data"]))
            fields = {}


async def enqueue(api: Api) -> str:
    answer = await api.post("/jobs", {"definition": "work"}, role=Role.ADMIN)
    return str(answer.json()["id"])


async def test_a_job_is_told_as_it_changes_until_it_ends(
    api: Api, server: str, connection: psycopg.Connection
):
    job_id = await enqueue(api)

    async with watching(api, server, f"/jobs/{job_id}/stream") as events:
        first = await anext(events)
        connection.execute(
            """update mainspring.jobs set progress = '{"current": 5, "total": 10}'"""
        )
        second = await anext(events)
        await api.post(f"/jobs/{job_id}/cancel")
        third = await anext(events)
        last = await anext(events)

    assert (first.name, first.data["job"]["state"]) == ("job", "queued")
    assert second.data["job"]["progress"]["current"] == 5
    assert third.data["job"]["state"] == "canceled"
    assert last.name == "end"
    assert len({first.id, second.id, third.id}) == 3


async def test_the_last_progress_is_told_before_the_end(api: Api, server: str, database_url: str):
    may_go = asyncio.Event()
    async with Mainspring(database_url) as app:

        @app.job
        async def read(ctx: Context) -> None:
            await may_go.wait()
            for page in range(1, 6):
                ctx.progress(page, 5)

        async with working(app):
            handle = await read.aenqueue()
            async with watching(api, server, f"/jobs/{handle.id}/stream") as events:
                told = [await anext(events)]
                may_go.set()
                told += [event async for event in events]

    *_, last, end = told
    assert (last.name, last.data["job"]["progress"]["current"]) == ("job", 5)
    assert end.name == "end"


async def test_who_comes_back_is_not_told_what_it_knows(api: Api, server: str):
    job_id = await enqueue(api)
    path = f"/jobs/{job_id}/stream"
    async with watching(api, server, path) as events:
        seen = await anext(events)

    async with watching(api, server, path, known=seen.id) as events:
        waiting = asyncio.ensure_future(anext(events))
        await api.post(f"/jobs/{job_id}/cancel")
        told = await waiting

    assert told.data["job"]["state"] == "canceled"


async def test_a_job_that_has_ended_is_told_once(api: Api, server: str):
    job_id = await enqueue(api)
    await api.post(f"/jobs/{job_id}/cancel")

    async with watching(api, server, f"/jobs/{job_id}/stream") as events:
        told = [event.name async for event in events]

    assert told == ["job", "end"]


async def test_what_a_job_prints_is_told(api: Api, server: str, connection: psycopg.Connection):
    job_id = await enqueue(api)
    connection.execute(
        "update mainspring.jobs set state = 'running', fence = 7, worker_id = 1, started_at = now()"
    )

    async with watching(api, server, f"/jobs/{job_id}/stream") as events:
        assert (await anext(events)).data["output"] is None
        connection.execute(
            "insert into mainspring.outputs (job_id, fence, stdout_tail) values (%s, 7, 'hello')",
            (job_id,),
        )
        told = await anext(events)

    assert told.data["output"] == {"stdout_tail": "hello", "stderr_tail": None}


async def test_lists_and_summaries_are_told(api: Api, server: str):
    async with (
        watching(api, server, "/jobs/stream?state=queued") as lists,
        watching(api, server, "/jobs/summary/stream") as summaries,
    ):
        empty, none = await anext(lists), await anext(summaries)
        job_id = await enqueue(api)
        listed, counted = await anext(lists), await anext(summaries)

    assert (empty.name, empty.data["items"]) == ("jobs", [])
    assert [job["id"] for job in listed.data["items"]] == [job_id]
    assert none.data["counts"]["queued"] == 0
    assert (counted.name, counted.data["counts"]["queued"]) == ("summary", 1)


async def test_a_list_is_told_in_short(api: Api, server: str):
    await api.post("/jobs", {"definition": "work", "payload": {"a": "b" * 10_000}})

    async with watching(api, server, "/jobs/stream") as lists:
        told = await anext(lists)

    assert "payload" not in told.data["items"][0]
    assert "result" not in told.data["items"][0]


@pytest.mark.parametrize(("size", "is_omitted"), [(65_536 - 2, False), (65_536 - 1, True)])
async def test_a_result_is_told_at_the_end_unless_it_is_too_large(
    api: Api, server: str, connection: psycopg.Connection, size: int, is_omitted: bool
):
    connection.execute(
        "insert into mainspring.jobs_history (job_id, definition, state, finished_at, result)"
        " values (7, 'work', 'succeeded', now(), to_jsonb(repeat('a', %s)))",
        (size,),
    )

    async with watching(api, server, "/jobs/7/stream") as events:
        last = await anext(events)

    assert last.data["job"]["is_result_omitted"] is is_omitted
    assert last.data["job"]["result"] == (None if is_omitted else "a" * size)
    assert "payload" not in last.data["job"]


async def test_a_member_watches_only_its_own(api: Api, server: str):
    theirs = await enqueue(api)

    refused = await api.get(f"/jobs/{theirs}/stream", role=Role.MEMBER)
    async with watching(api, server, "/jobs/stream", role=Role.MEMBER) as lists:
        told = await anext(lists)

    assert refused.status_code == 404
    assert told.data["items"] == []


async def test_a_hundred_streams_share_one_connection(
    api: Api, server: str, connection: psycopg.Connection
):
    job_ids = [await enqueue(api) for _ in range(10)]
    token = api.tokens["default", Role.ADMIN]
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=server, limits=limits, timeout=20) as client:

        async def watch(job_id: str) -> list[str]:
            headers = {"Authorization": f"Bearer {token}"}
            path = f"/api/v1/jobs/{job_id}/stream"
            async with client.stream("GET", path, headers=headers) as answer:
                return [event.name async for event in _events(answer)]

        watchers = [asyncio.create_task(watch(job_id)) for job_id in job_ids * 10]
        hub = api.app.state.server.hub
        await await_until(lambda: sum(topic.watchers for topic in hub._jobs.values()) == 100)
        backends = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and application_name = 'mainspring' and state <> 'idle'"
        ).fetchone()
        connection.execute("select mainspring.cancel(job_id) from mainspring.jobs")
        told = await asyncio.gather(*watchers)

    assert backends is not None
    assert backends[0] <= 1
    assert all(names[-1] == "end" for names in told)
    assert not hub._jobs


async def test_a_quiet_stream_ends_when_its_token_is_revoked(
    api: Api, server: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mainspring.api.streams._CHECK_EVERY", 0.05)
    new = await tokens.create(api.database, "passing", "admin", tenant_id="default")
    api.tokens["default", Role.ADMIN] = new.text
    job_id = await enqueue(api)

    async with watching(api, server, f"/jobs/{job_id}/stream") as events:
        await anext(events)
        await tokens.revoke(api.database, "passing")
        rest = [event async for event in events]

    (last,) = rest
    assert (last.name, last.data["code"]) == ("refused", "unauthenticated")


@pytest.mark.parametrize(
    "change",
    [
        "update mainspring.tokens set revoked_at = now() where name = 'passing'",
        "update mainspring.tokens set role = 'member' where name = 'passing'",
        "update mainspring.tokens set scopes = '{events:read}' where name = 'passing'",
        "update mainspring.tokens set tenant_id = 'acme' where name = 'passing'",
        "update mainspring.tokens set expires_at = now() where name = 'passing'",
    ],
)
@pytest.mark.parametrize("path", ["/jobs/stream", "/jobs/summary/stream", "/jobs/{}/stream"])
async def test_nothing_is_told_to_who_has_lost_the_right(
    api: Api,
    server: str,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    change: str,
):
    monkeypatch.setattr("mainspring.api.streams._FRESH", 0.0)
    job_id = await enqueue(api)
    new = await tokens.create(api.database, "passing", "admin", tenant_id="default")
    api.tokens["default", Role.ADMIN] = new.text

    async with watching(api, server, path.format(job_id)) as events:
        await anext(events)
        connection.execute(change.encode())
        connection.execute("select mainspring.cancel(job_id) from mainspring.jobs")
        rest = [event async for event in events]

    assert [event.name for event in rest] == ["refused"]


async def test_streams_of_one_token_share_one_check(
    api: Api, server: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mainspring.api.streams._FRESH", -1.0)
    asked = 0
    authenticate = tokens.authenticate

    async def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return await authenticate(*given)

    monkeypatch.setattr(tokens, "authenticate", counted)
    job_id = await enqueue(api)
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(watching(api, server, f"/jobs/{job_id}/stream"))
            for _ in range(20)
        ]
        await asyncio.gather(*map(anext, streams))
        asked = 0
        await api.post(f"/jobs/{job_id}/cancel")
        await asyncio.gather(*map(anext, streams))

    assert 1 <= asked <= 4
