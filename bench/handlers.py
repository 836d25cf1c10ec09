"""What every system's worker runs for a job: the same few lines, so that only the queue differs.

The worker's environment chooses one of four: `noop`; `stamp`, which reports when it began; `hold`,
which reports and then stays running; and `trace`, which reports when it began and its number.
"""

import asyncio
import os
import struct
import time
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, Final

HANDLER_VARIABLE: Final = "BENCH_HANDLER"
STAMPS_VARIABLE: Final = "BENCH_STAMPS"
STAMP: Final = struct.Struct("d")
TRACE: Final = struct.Struct("dq")
_HOLD_SECONDS: Final = 3600

Handler = Callable[[int], Coroutine[Any, Any, None]]


async def noop(n: int) -> None:
    pass


async def stamp(n: int) -> None:
    report()


async def hold(n: int) -> None:
    report()
    await asyncio.sleep(_HOLD_SECONDS)


async def trace(n: int) -> None:
    os.write(_pipe(), TRACE.pack(time.time(), n))


def chosen() -> Handler:
    known = {"noop": noop, "stamp": stamp, "hold": hold, "trace": trace}
    return known[os.environ.get(HANDLER_VARIABLE, "noop")]


def report() -> None:
    """Say that something begins now."""
    os.write(_pipe(), STAMP.pack(time.time()))


@cache
def _pipe() -> int:
    return os.open(os.environ[STAMPS_VARIABLE], os.O_WRONLY)


job: Final = chosen()
"""The handler by a fixed import path, for systems that store one with the job."""
