"""Jobs that worker processes run in tests; what they do is read back from two tables."""

import asyncio
import os
import random
import signal
import time
from datetime import timedelta
from functools import cache

import psycopg

from mainspring import Backoff, Context, Fail, Mainspring

AT_ONCE = Backoff(timedelta(0), jitter=timedelta(0))
FOR_EVER = 60.0
MUCH = "x" * 5 * 1024 * 1024
BLOCKED = 4712  # The advisory lock of answer_late and block_the_loop.
TABLES = """
create table notes (
    job_id bigint, what text, attempt integer, pid integer, at timestamptz default clock_timestamp()
);
create table effects (job_id bigint);
"""

app = Mainspring()


def note(ctx: Context, what: str) -> None:
    """Say something that stays even if the process dies in the next instant."""
    _notebook().execute(
        "insert into notes values (%s, %s, %s, %s)", (ctx.job_id, what, ctx.attempt, os.getpid())
    )


def _noted(what: str) -> list[tuple[int]]:
    return _notebook().execute("select job_id from notes where what = %s", (what,)).fetchall()


def _processes(what: str) -> int:
    query = "select distinct pid from notes where what = %s"
    return len(_notebook().execute(query, (what,)).fetchall())


@cache
def _notebook() -> psycopg.Connection:
    url = os.environ["MAINSPRING_DATABASE_URL"]
    return psycopg.connect(url, autocommit=True, options="-c synchronous_commit=off")


@app.job
async def do_nothing(number: int) -> None:
    await asyncio.sleep(0)


@app.job
async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job
async def record(ctx: Context, number: int) -> int:
    note(ctx, "ran")
    await asyncio.sleep(0)
    return number


@app.job(max_attempts=2, backoff=AT_ONCE)
async def fail_in_one_of_two_ways(number: int) -> None:
    if number % 2:
        raise LookupError(f"no number {number} in '/srv/{number}'")
    raise ValueError(f"the number {number} is even")


@app.job
async def record_beside(ctx: Context, number: int, workers: int) -> int:
    """Holds its place until so many processes have run one, so that each gets its share."""
    note(ctx, "ran")
    while _processes("ran") < workers:  # noqa: ASYNC110 - the others are processes
        await asyncio.sleep(0.02)
    return number


@app.job
def record_in_thread(ctx: Context, number: int) -> int:
    note(ctx, "ran")
    return number


@app.job
async def take_a_while(ctx: Context, seconds: float) -> str:
    note(ctx, "began")
    await asyncio.sleep(seconds)
    note(ctx, "done")
    return "done"


@app.job(concurrency=2)
async def take_turns(ctx: Context, seconds: float) -> None:
    note(ctx, "began")
    await asyncio.sleep(seconds)
    note(ctx, "done")


@app.job(concurrency=1)
async def hang_alone(ctx: Context) -> None:
    """Hangs in the first attempt of the first job, which the others wait for."""
    note(ctx, "began")
    if ctx.attempt == 1 and len(_noted("began")) == 1:
        await asyncio.sleep(FOR_EVER)


@app.job
def take_a_while_in_thread(ctx: Context, seconds: float) -> str:
    note(ctx, "began")
    time.sleep(seconds)
    note(ctx, "done")
    return "done"


@app.job
async def hang_at_first(ctx: Context) -> dict[str, int]:
    """Hangs in its first attempt; the next one answers at once."""
    note(ctx, "began")
    if ctx.attempt == 1:
        try:
            await asyncio.sleep(FOR_EVER)
        except asyncio.CancelledError:
            note(ctx, "canceled")
            raise
    return {"attempt": ctx.attempt, "pid": os.getpid()}


@app.job
async def answer_late(ctx: Context) -> dict[str, int]:
    """Its first attempt ends once nobody holds the lock, however long the process was paused
    meanwhile; nothing can cancel it."""
    note(ctx, "began")
    if ctx.attempt == 1:
        _notebook().execute(f"select pg_advisory_xact_lock_shared({BLOCKED})")
    return {"attempt": ctx.attempt}


@app.job
async def block_the_loop(ctx: Context) -> dict[str, int]:
    """Its first attempt blocks the event loop until nobody holds the lock."""
    note(ctx, "blocked")
    if ctx.attempt == 1:
        _notebook().execute(f"select pg_advisory_xact_lock_shared({BLOCKED})")
    return {"attempt": ctx.attempt}


@app.job(max_attempts=1)
async def save_then_hang(ctx: Context) -> object:
    """Hangs after its checkpoint; an attempt that finds one returns it."""
    if ctx.saved is None:
        await ctx.acheckpoint({"page": 7})
        note(ctx, "saved")
        await asyncio.sleep(FOR_EVER)
    return ctx.saved


@app.job
async def add_effect(ctx: Context) -> None:
    async with ctx.transaction() as connection:
        await connection.execute("insert into effects values (%s)", (ctx.job_id,))
        await asyncio.sleep(random.uniform(0, 0.05))
    await asyncio.sleep(random.uniform(0, 0.05))


@app.job
def add_effect_in_thread(ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
        time.sleep(random.uniform(0, 0.05))


@app.job(mode="process")
def add_effect_in_process(ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
        time.sleep(random.uniform(0, 0.05))


@app.job(mode="process")
def add_effect_and_fail_in_process(ctx: Context) -> Fail:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
    return Fail("no")


@app.job(mode="process")
def add_effect_and_answer_nonsense_in_process(ctx: Context) -> object:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
    return {1: "a key that is no text"}


@app.job(mode="process")
def answer_much_in_process() -> str:
    return MUCH


@app.job(mode="process")
def add_effect_and_answer_much_in_process(ctx: Context) -> str:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
    return MUCH


@app.job
async def crash(ctx: Context) -> None:
    note(ctx, "crashed")
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job
def crash_in_thread(ctx: Context) -> None:
    note(ctx, "crashed")
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job
async def leave_the_process(ctx: Context) -> None:
    os._exit(3)


@app.job
async def hang_for(ctx: Context, attempts: int) -> dict[str, int]:
    """Hangs in so many attempts; the next one answers at once."""
    note(ctx, "began")
    if ctx.attempt <= attempts:
        await asyncio.sleep(FOR_EVER)
    return {"attempt": ctx.attempt, "pid": os.getpid()}


@app.job(backoff=AT_ONCE)
async def use_the_context(ctx: Context) -> object:
    """Uses all that a context offers; the first attempt fails after its checkpoint."""
    ctx.progress(1, 2, "half of it")
    if ctx.saved is None:
        await ctx.acheckpoint({"pid": os.getpid()})
        raise ValueError("not yet")
    async with ctx.transaction() as connection:
        await connection.execute("insert into effects values (%s)", (ctx.job_id,))
        await ctx.aenqueue(do_nothing, number=ctx.saved["pid"])
    return {"saved": ctx.saved, "pid": os.getpid()}


@app.job(backoff=AT_ONCE)
def use_the_context_in_thread(ctx: Context) -> object:
    ctx.progress(1, 2, "half of it")
    if ctx.saved is None:
        ctx.checkpoint({"pid": os.getpid()})
        raise ValueError("not yet")
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
        ctx.enqueue(do_nothing, number=ctx.saved["pid"])
    return {"saved": ctx.saved, "pid": os.getpid()}


@app.job(mode="process", max_attempts=2, backoff=AT_ONCE)
def kill_own_process(ctx: Context) -> None:
    note(ctx, "began")
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(mode="process")
def add_up(numbers: list[int]) -> int:
    return sum(numbers)


@app.job(mode="process", timeout=timedelta(seconds=0.3), max_attempts=1)
def overrun_in_process() -> None:
    time.sleep(FOR_EVER)


@app.job(mode="process")
def hang_in_process(ctx: Context) -> None:
    note(ctx, "began")
    time.sleep(FOR_EVER)


@app.job(mode="process")
def stop_when_asked_in_process(ctx: Context) -> None:
    note(ctx, "began")
    while not ctx.is_canceled:
        time.sleep(0.01)
    note(ctx, "noticed")
    ctx.raise_if_canceled()


@app.job(queue="elsewhere")
async def greet(name: str) -> str:
    return f"Hello, {name}"


PAGES = 12


def report_pages(ctx: Context) -> None:
    for page in range(1, PAGES + 1):
        ctx.progress(page, PAGES)


@app.job(mode="process")
def read_pages_in_process(ctx: Context) -> None:
    report_pages(ctx)


@app.job(mode="process")
def read_pages_in_a_transaction_of_its_process(ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute("insert into effects values (%s)", (ctx.job_id,))
        report_pages(ctx)


@app.job(mode="process", max_attempts=1)
def read_pages_and_fail_in_process(ctx: Context) -> None:
    report_pages(ctx)
    raise ValueError("the last page is torn")
