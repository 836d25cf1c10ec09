"""A worker inside the test's own event loop, for what needs no process of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mainspring import Job, JobHandle, JobState, Mainspring
from mainspring.runtime.worker.worker import Worker
from mainspring.settings import load
from tests.support.waiting import await_until

SETTINGS = {"poll_seconds": 0.2, "drain_seconds": 5, "cancel_grace_seconds": 0.2}


@asynccontextmanager
async def working(
    app: Mainspring, *, queues: tuple[str, ...] = (), **settings: object
) -> AsyncIterator[Worker]:
    """A running worker for all jobs of the app, and of more queues if given; at the end it does
    not wait for them."""
    url = app.database.url
    await app.aregister_definitions()
    worker = Worker(
        url,
        app.handlers,
        queues=tuple({*app.definition_queues, "default", *queues}),
        settings=load(database_url=url, **{**SETTINGS, **settings}),
        enqueuer=app,
        version="test",
    )
    running = asyncio.create_task(worker.run())
    started = asyncio.create_task(worker.started.wait())
    await asyncio.wait((running, started), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield worker
    finally:
        started.cancel()
        worker.hurry()
        worker.stop()
        async with asyncio.timeout(20):
            await running


async def ended(handle: JobHandle, within: float = 10) -> Job:
    """The job once it is over, however it ended."""

    async def final() -> Job | None:
        job = await handle.ajob()
        return job if job.is_final else None

    job = await await_until(final, within, f"{handle} ends")
    assert job is not None
    return job


async def retried(handle: JobHandle, failures: int = 1) -> Job:
    """The job once it waits after so many failures."""

    async def waiting() -> Job | None:
        job = await handle.ajob()
        is_waiting = job.state is JobState.QUEUED and job.failures == failures
        return job if is_waiting else None

    job = await await_until(waiting, what=f"{handle} has failed {failures} times")
    assert job is not None
    return job
