"""Lets a process know that the one that started it is gone, however it went.

A lifeline is a pipe whose writing end the parent alone holds. Nobody writes to it; it ends when the
parent does, even by `kill -9`, and the child sees that at once.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

# No name of a setting, and taken out of the environment by whom it is meant for.
_VARIABLE = "_MAINSPRING_LIFELINE"


class ParentWatch:
    """The parent's side; what `fds` and `environment` say is given to every child."""

    def __init__(self) -> None:
        self._end, self._own = os.pipe()

    @property
    def fds(self) -> tuple[int]:
        return (self._end,)

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, _VARIABLE: str(self._end)}

    def close(self) -> None:
        os.close(self._end)
        os.close(self._own)


def has_supervisor() -> bool:
    """Whether this process was started with a lifeline."""
    return _VARIABLE in os.environ


@contextmanager
def parent_watched(on_gone: Callable[[], None]) -> Iterator[None]:
    """The child's side: calls `on_gone` once when the parent is gone; never without a lifeline."""
    given = os.environ.pop(_VARIABLE, None)
    if given is None:
        yield
        return
    loop, end = asyncio.get_running_loop(), int(given)

    def ended() -> None:
        loop.remove_reader(end)
        on_gone()

    loop.add_reader(end, ended)
    try:
        yield
    finally:
        loop.remove_reader(end)
        os.close(end)
