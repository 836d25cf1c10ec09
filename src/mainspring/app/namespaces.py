"""What the doors of an app have in common: `app.definitions`, `app.limits` and the like."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mainspring.db.database import Database
from mainspring.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class Owner(Protocol):
    """The `Mainspring` as its doors need it."""

    @property
    def database(self) -> Database: ...

    @property
    def settings(self) -> Settings: ...

    def blocking(self, coroutine: Coroutine[Any, Any, T]) -> T: ...

    async def async_definitions(self) -> None: ...


class Door:
    """One noun of an app. Each async method has a blocking twin without its a."""

    def __init__(self, app: Owner) -> None:
        self._app = app


D = TypeVar("D", bound=Door)


def blocking(
    method: Callable[Concatenate[D, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[D, P], T]:
    """The same method for plain code."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._app.blocking(method(self, *args, **kwargs))

    owner, _, name = method.__qualname__.rpartition(".")
    run.__name__ = name.removeprefix("a")
    run.__qualname__ = f"{owner}.{run.__name__}"
    return run
