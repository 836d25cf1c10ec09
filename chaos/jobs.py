"""The jobs that run while things break; the workers of `make chaos` load this module."""

import asyncio
import os
import signal
import time
from datetime import timedelta

from chaos.shares import BULK_SECONDS
from chaos.waits import BACKOFF_SECONDS
from mainspring import Backoff, Context, Mainspring

# The database comes from MAINSPRING_DATABASE_URL.
app = Mainspring()

_QUICKLY = Backoff(base=timedelta(seconds=BACKOFF_SECONDS), factor=1.0, jitter=timedelta(0))
_MANY = 500


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def plain(n: int) -> int:
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
def threaded(n: int) -> int:
    time.sleep(0.02)
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def slow(n: int) -> int:
    """Runs past a renewal of the lease or two."""
    await asyncio.sleep(0.5 + n % 4)
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def flaky(ctx: Context, n: int) -> int:
    if ctx.attempt < 3:
        raise ValueError("not yet")
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def once(ctx: Context, n: int) -> int:
    """Its effect is committed with its success."""
    async with ctx.transaction() as connection:
        await connection.execute(
            "insert into chaos.effects (job_id, n, tenant) values (%s, %s, %s)",
            (ctx.job_id, n, ctx.tenant_id),
        )
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY, concurrency=2)
async def limited(n: int) -> int:
    await asyncio.sleep(0.05)
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY, key_concurrency=1, limit_by="key")
async def keyed(n: int, key: int) -> int:
    await asyncio.sleep(0.02)
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def step(ctx: Context, n: int) -> int:
    """A step of a flow: the sum of its parents and one."""
    return 1 + sum(parent.result or 0 for parent in await ctx.aparents())


@app.job(max_attempts=_MANY, backoff=_QUICKLY, approvals_needed=1)
async def approved(n: int) -> int:
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def evented(n: int) -> int:
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY, queue="far")
async def far(n: int) -> int:
    """Only the worker behind the network serves its queue."""
    return n


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def bulk(n: int) -> int:
    """One of many of the heavy tenant."""
    await asyncio.sleep(BULK_SECONDS)
    return n


@app.schedule("@every 1s", name="tick", catch_up="all", catch_up_limit=10_000, max_running=1000)
@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def tick() -> None:
    pass


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def blocking(seconds: float) -> None:
    """Blocks the event loop of its worker."""
    time.sleep(seconds)  # noqa: ASYNC251 - that is the fault


@app.job(max_attempts=_MANY, backoff=_QUICKLY)
async def poison() -> None:
    """Ends the process that runs it, whichever that is."""
    os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    with app:
        app.register_definitions()
        app.schedules.prepare()
