"""The REST API: what a request costs beyond a bare route, lists and summaries beside a history, and
what many streams hold and hear."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil
import psycopg

from bench import processes, requests
from bench.benches import Bench
from bench.catalogue import OURS, System
from bench.measurements import MEBIBYTES, MILLISECONDS, REQUESTS_PER_SECOND, SECONDS, Measurement
from bench.requests import Connection

_POSTS: Final = 8_000
_CONNECTIONS: Final = 32
_LOOKS: Final = 60
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000
_STREAMS: Final = 2_000
_MEBIBYTE: Final = 1024 * 1024
_BODY: Final = b'{"definition": "noop", "payload": {"n": 1}}'
_DEFINE: Final = """
insert into mainspring.definitions (key, kind, queue) values ('noop', 'python', 'bench')
on conflict do nothing
"""
_JSON: Final = {"Content-Type": "application/json"}


@contextmanager
def _serving(system: System, dsn: str) -> Iterator[tuple[int, dict[str, str], int]]:
    """The port, the headers that let someone in, and the server's process."""
    headers = dict(_JSON)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_DEFINE)
    if system.name == OURS:
        headers["Authorization"] = f"Bearer {processes.token(dsn)}"
    with processes.serving(system, dsn) as (port, running):
        yield port, headers, running.pids[0]


def post(bench: Bench, system: System) -> list[Measurement]:
    """One job a request, 32 requests at a time, one server process."""
    path = "/api/v1/jobs" if system.name == OURS else "/jobs"
    with bench.database(system) as dsn, _serving(system, dsn) as (port, headers, _):
        request = requests.request("POST", path, headers, body=_BODY)
        count = bench.scaled(_POSTS)
        value = asyncio.run(requests.rate(port, request, connections=_CONNECTIONS, count=count))
    return [Measurement("api_post", system.name, value, REQUESTS_PER_SECOND)]


def lists(bench: Bench, system: System) -> list[Measurement]:
    """The first page of the job list, and the summary, beside a small and a large history."""
    taken = []
    for size, name in ((_THOUSAND, "thousand"), (bench.scaled(_MILLION), "million")):
        with (
            bench.database(system, finished=size) as dsn,
            _serving(system, dsn) as (port, headers, _),
        ):
            _keep_tallies(dsn)
            for what, path in (("list", "/api/v1/jobs"), ("summary", "/api/v1/jobs/summary")):
                request = requests.request("GET", path, headers)
                value = asyncio.run(requests.median_ms(port, request, count=_LOOKS))
                taken.append(Measurement(f"api_{what}_{name}", system.name, value, MILLISECONDS))
    return taken


def _keep_tallies(dsn: str) -> None:
    """The rows of the history were not written by anyone who counts."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into mainspring.tallies (tenant_id, day, state, count)"
            " select tenant_id, mainspring.day_of(finished_at), state, count(*)"
            " from mainspring.jobs_history group by 1, 2, 3 on conflict do nothing"
        )


def streams(bench: Bench, system: System) -> list[Measurement]:
    """What a server holds with 2,000 streams of one job, and how soon all hear of a change."""
    with bench.database(system) as dsn, _serving(system, dsn) as (port, headers, pid):
        resident, seconds = asyncio.run(_watch(dsn, port, headers, pid=pid))
    return [
        Measurement("api_streams_memory", system.name, resident / _MEBIBYTE, MEBIBYTES),
        Measurement("api_streams_heard", system.name, seconds, SECONDS),
    ]


async def _watch(dsn: str, port: int, headers: dict[str, str], *, pid: int) -> tuple[int, float]:
    post = requests.request("POST", "/api/v1/jobs", headers, body=_BODY)
    caller = await Connection.open(port)
    job_id = (await caller.ask(post)).split(b'"')[3].decode()
    request = requests.request("GET", f"/api/v1/jobs/{job_id}/stream", headers)
    opened = []
    for _ in range(_STREAMS):
        connection = await Connection.open(port)
        await connection.start(request)
        opened.append(connection)
    await asyncio.gather(*(each.reader.readuntil(b'"state":"queued"') for each in opened))
    resident = int(psutil.Process(pid).memory_info().rss)
    hearing = [asyncio.create_task(each.reader.readuntil(b'"state":"canceled"')) for each in opened]
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as database:
        await database.execute("select mainspring.cancel(%s)", (int(job_id),))
    changed_at = time.perf_counter()
    await asyncio.gather(*hearing)
    seconds = time.perf_counter() - changed_at
    for each in opened:
        each.close()
    return resident, seconds
