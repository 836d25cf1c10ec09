"""Waiting for a condition: the only place where tests sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

_LOOK_EVERY = 0.01
# What holds ends the wait at once; only a failure takes so long, also on a busy machine.
PATIENCE = 30.0


def wait_until(predicate: Callable[[], T], timeout: float = PATIENCE, what: str = "") -> T:
    """The first truthy answer of the predicate; fails when there is none within the timeout."""
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(predicate, timeout, what))
        time.sleep(_LOOK_EVERY)
    return answer


@overload
async def await_until(
    predicate: Callable[[], Awaitable[T]], within: float = PATIENCE, what: str = ""
) -> T: ...
@overload
async def await_until(
    predicate: Callable[[], T], within: float = PATIENCE, what: str = ""
) -> T: ...
async def await_until(
    predicate: Callable[[], Any], within: float = PATIENCE, what: str = ""
) -> Any:
    """The same in an event loop; the predicate may be async."""
    deadline = time.monotonic() + within
    while not (answer := await _answer(predicate)):
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(predicate, within, what))
        await asyncio.sleep(_LOOK_EVERY)
    return answer


async def _answer(predicate: Callable[[], Any]) -> Any:
    answer = predicate()
    return await answer if isinstance(answer, Awaitable) else answer


def _complaint(predicate: object, timeout: float, what: str) -> str:
    name = what or getattr(predicate, "__qualname__", repr(predicate))
    return f"not within {timeout:g} s: {name}"
