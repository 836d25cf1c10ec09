"""What the namespaces of an app have in common: `app.jobs`, `app.schedules` and the like."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from mainspring.db.database import Database
from mainspring.db.plans import Plan, arun, run
from mainspring.domain.definitions import Handler
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.services.enqueueing import Enqueuer
from mainspring.settings import Settings

if TYPE_CHECKING:
    from mainspring.app.job_functions import JobFunction, JobHandle

P = ParamSpec("P")
T = TypeVar("T")


class App(Protocol):
    """The `Mainspring` as its namespaces and job functions use it."""

    settings: Settings
    database: Database
    enqueuer: Enqueuer
    functions: "dict[str, JobFunction[..., Any]]"

    def register(self, handler: Handler) -> None: ...

    def register_definitions(self) -> None: ...

    async def aregister_definitions(self) -> None: ...

    def enqueue_payload(
        self, key: str, payload: object, options: EnqueueOptions, *, connection: object
    ) -> "JobHandle": ...

    async def aenqueue_payload(
        self, key: str, payload: object, options: EnqueueOptions, *, connection: object
    ) -> "JobHandle": ...

    def blocking(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class Namespace:
    """One noun of an app. Each async method has a blocking version without the leading a."""

    def __init__(self, app: App) -> None:
        self._app = app


N = TypeVar("N", bound=Namespace)


def blocking(
    method: Callable[Concatenate[N, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[N, P], T]:
    """The blocking twin of an async method."""

    @wraps(method)
    def twin(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._app.blocking(method(self, *args, **kwargs))

    owner, _, name = method.__qualname__.rpartition(".")
    twin.__name__ = name.removeprefix("a")
    twin.__qualname__ = f"{owner}.{twin.__name__}"
    return twin


def twins(
    method: Callable[Concatenate[N, P], Plan[T]],
) -> tuple[Callable[Concatenate[N, P], T], Callable[Concatenate[N, P], Coroutine[Any, Any, T]]]:
    """The blocking and the async method that run the plans of a method named with an underscore."""

    @wraps(method)
    def twin(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self, *args, **kwargs), self._app.database)

    @wraps(method)
    async def atwin(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(method(self, *args, **kwargs), self._app.database)

    owner, _, name = method.__qualname__.rpartition(".")
    for each, prefix in ((twin, ""), (atwin, "a")):
        each.__name__ = prefix + name.removeprefix("_")
        each.__qualname__ = f"{owner}.{each.__name__}"
    return twin, atwin
