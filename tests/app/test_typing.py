"""Types: an editor sees a wrong argument of an enqueue or a schedule before it runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm import ROOT

# Each line that ends with "# wrong" must be reported, and no other.
SAMPLE = """
from datetime import timedelta

from mainspring import Context, JobHandle, Launcher, Mainspring, ScheduleState, Triggered

app = Mainspring()


@app.job
async def plain(user_id: int, *, loudly: bool = False) -> str:
    return str(user_id)


@app.job(queue="mail", timeout=timedelta(seconds=30))
async def with_context(ctx: Context, user_id: int) -> None: ...


@app.job
def with_default_context(user_id: int, *, ctx: Context | None = None) -> dict[str, int]:
    return {"user_id": user_id}


@app.job
def bare(ctx: Context, name: str) -> int:
    return len(name)


@app.launcher("picky")
class Picky(Launcher): ...


@app.schedule("0 2 * * *", zone="UTC", catch_up="all", payload={"user_id": 7}, launcher=Picky)
@app.job
async def nightly(user_id: int) -> str:
    return str(user_id)


async def right() -> None:
    nightly.enqueue(user_id=7)
    state: ScheduleState = app.schedules.create("a", nightly, every=timedelta(minutes=5))
    states: list[ScheduleState] = await app.schedules.alist(enabled=True)
    app.schedules.update("a", name="b", definition="plain", cron="@daily", every=None)
    done: Triggered = app.schedules.trigger("a", wait=timedelta(seconds=5), connection=object())
    Picky().check_conditions()
    handle: JobHandle = plain.enqueue(7)
    handle = await plain.aenqueue(user_id=7, loudly=True)
    with_context.enqueue(user_id=7)
    await with_context.aenqueue(7)
    with_default_context.enqueue(user_id=7)
    bare.enqueue(name="Ada")
    plain.options(priority=5, delay=timedelta(minutes=1)).enqueue(7)
    await plain.options(connection=object()).aenqueue(user_id=7)
    plain.enqueue(7, connection=object())
    await with_context.aenqueue(user_id=7, connection=object())
    await app.aenqueue_many(plain, [{"user_id": 7}])
    text: str = await plain(7)
    length: str = bare(None, "Ada")  # wrong


async def wrong() -> None:
    plain.enqueue("7")  # wrong
    await plain.aenqueue(user_id="7")  # wrong
    plain.enqueue()  # wrong
    plain.enqueue(7, loud=True)  # wrong
    await plain.aenqueue(7, loudly="yes")  # wrong
    with_context.enqueue(user_id="7")  # wrong
    await with_context.aenqueue()  # wrong
    with_default_context.enqueue(user_id=None)  # wrong
    bare.enqueue(name=7)  # wrong
    bare.enqueue("Ada", "Bob")  # wrong
    plain.options(priority="first").enqueue(7)  # wrong
    plain.options(delay=5).enqueue(7)  # wrong
    plain.options(prioritty=5).enqueue(7)  # wrong
    plain.options(priority=5).enqueue("7")  # wrong
    app.job(max_attempts="3")  # wrong
    nightly.enqueue(user_id="7")  # wrong
    app.schedule("@daily", zome="UTC")  # wrong
    app.schedule("@daily", catch_up="some")  # wrong
    app.schedule(every=5)  # wrong
    app.schedules.create("a", nightly, evry=timedelta(minutes=5))  # wrong
    app.schedules.update("a", nam="b")  # wrong
    app.schedules.trigger("a", wait=5)  # wrong
    app.launcher(int)  # wrong
"""


def lines_marked_wrong() -> set[int]:
    lines = enumerate(SAMPLE.splitlines(), start=1)
    return {number for number, line in lines if line.endswith("# wrong")}


@pytest.mark.xdist_group("mypy")
def test_exactly_the_wrong_arguments_are_reported(tmp_path: Path):
    (tmp_path / "sample.py").write_text(SAMPLE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "sample.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    reported = {int(line) for line in re.findall(r"sample\.py:(\d+): error", done.stdout)}

    assert reported == lines_marked_wrong(), done.stdout + done.stderr
