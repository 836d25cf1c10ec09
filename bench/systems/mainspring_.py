"""Mainspring by its Python interface; worker and scheduler are the commands of a user."""

import asyncio
import statistics
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import uvloop

from bench.handlers import chosen
from bench.systems import scheduler
from bench.systems.driver import QUEUE
from mainspring import Backoff, Mainspring, __version__, telemetry
from mainspring.db import migrate
from mainspring.runtime.loop import Loop
from mainspring.runtime.scheduler import scheduler as runtime

_SECONDS: Final = 2.0
_WAKE_SECONDS: Final = 0.001
_HELD_SECONDS: Final = 3600

# The database comes from MAINSPRING_DATABASE_URL, as it would in a deployment.
app: Final = Mainspring()
noop: Final = app.job(key="noop", queue=QUEUE)(chosen())

keyed: Final = app.job(key="keyed", queue=QUEUE, key_concurrency=10, limit_by="n")(chosen())


_failed: Final[set[int]] = set()


@app.job(queue=QUEUE, backoff=Backoff(timedelta(0), jitter=timedelta(0)))
async def failing(n: int) -> None:
    """Every fifth fails once."""
    if n % 5 == 0 and n not in _failed:
        _failed.add(n)
        raise ValueError(f"no luck with {n}")


@app.job(queue=QUEUE, concurrency=1)
async def held(n: int) -> None:
    """The others of its kind wait for it."""
    await asyncio.sleep(_HELD_SECONDS)


# A scheduler is started with the app that has the name of the command; see bench.processes.
fire_due: Final = app
every_second: Final = Mainspring()
# Nobody works its jobs, which are to be enqueued all the same.
every_second.schedule("@every 1s", payload={"n": 0}, max_running=1000)(
    every_second.job(key="noop", queue=QUEUE)(chosen())
)


class Client:
    def enqueue(self, n: int) -> None:
        noop.enqueue(n)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        app.enqueue_many(noop, [{"n": n} for n in numbers])


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(migrate.migrate(dsn))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with app:
            yield Client()

    def work(self, dsn: str, concurrency: int) -> None:
        raise NotImplementedError("the worker is started as `mainspring worker`")


class Scheduler(scheduler.Scheduler):
    def tick(self, dsn: str) -> float:
        """The median pass over the schedules and that of the chores which go with it."""
        # By itself its log would go where the result is printed.
        telemetry.configure()
        return uvloop.run(_tick())


class _TimedScheduler(runtime.Scheduler):
    """Ours with a stopwatch around each pass."""

    def __init__(self) -> None:
        super().__init__(
            app.database.url, {}, settings=app.settings, version=__version__, job_queue=app
        )
        self.looks: list[float] = []
        self.chore_rounds: list[float] = []

    async def _pass(self) -> float:
        return await _timed(super()._pass(), self.looks)

    async def _maintain(self) -> float:
        return await _timed(super()._maintain(), self.chore_rounds)


async def _timed(passing: Coroutine[Any, Any, float], seconds: list[float]) -> float:
    began_at = time.perf_counter()
    pause = await passing
    seconds.append(time.perf_counter() - began_at)
    return pause


async def _tick() -> float:
    await app.schedules.aprepare()
    timed = _TimedScheduler()
    running = asyncio.create_task(timed.run())
    await timed.started.wait()
    for loop in (timed.loop, timed.maintenance):
        await _keep_awake(loop)
    timed.stop()
    await running
    seconds = [statistics.median(times) for times in (timed.looks, timed.chore_rounds)]
    return sum(seconds) * 1000


async def _keep_awake(loop: Loop) -> None:
    until = time.perf_counter() + _SECONDS
    while time.perf_counter() < until:
        loop.wake()
        await asyncio.sleep(_WAKE_SECONDS)
