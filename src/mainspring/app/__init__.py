"""The Python interface: `Mainspring`, a decorator, and jobs that can be enqueued and awaited.

app = Mainspring()

@app.job(queue="mail", max_attempts=5)
async def send_welcome(user_id: int) -> None: ...

send_welcome.enqueue(user_id=7)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from mainspring import __version__
from mainspring import settings as settings_module
from mainspring.app.enqueueing import EnqueueMethods
from mainspring.app.job_functions import JobDecorator, JobFunction, make_definition
from mainspring.app.nouns import Namespaces
from mainspring.db.database import Database
from mainspring.db.plans import arun, run
from mainspring.domain.definitions import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_TIMEOUT,
    Handler,
    ensure_key,
    ensure_own_key,
)
from mainspring.domain.errors import InputError, InvalidDefinition
from mainspring.domain.handlers import ensure_plain_worker
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.types import DEFAULT_PRIORITY, DEFAULT_QUEUE, Delivery, ExecutionMode
from mainspring.runtime.worker.context import Context
from mainspring.services.enqueueing import Enqueuer
from mainspring.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

# What is used so often that it needs no namespace.
_SHORTCUTS = {
    "emit": ("events", "emit"),
    "aemit": ("events", "aemit"),
    "schedule": ("schedules", "declare"),
    "launcher": ("schedules", "launcher"),
    "register_launcher": ("schedules", "register_launcher"),
}


class Mainspring(EnqueueMethods, Namespaces):
    """Definitions and their handlers, and access to the database.

    Without a URL (argument or MAINSPRING_DATABASE_URL) the embedded PostgreSQL is used.
    """

    def __init__(
        self, database_url: str | None = None, *, settings: Settings | None = None
    ) -> None:
        self.handlers: dict[str, Handler] = {}
        self.functions = {}
        self._apis: list[Any] = []
        self._connect_to(settings or settings_module.load(database_url=database_url))
        if TYPE_CHECKING:  # Of _SHORTCUTS, for editors and type checkers.
            self.emit, self.aemit = self.events.emit, self.events.aemit
            self.schedule = self.schedules.declare
            self.launcher = self.schedules.launcher
            self.register_launcher = self.schedules.register_launcher

    def __getattr__(self, name: str) -> Any:
        """Import a namespace on first use: a worker needs none of them to start."""
        if name in _SHORTCUTS:
            noun, method = _SHORTCUTS[name]
            found = getattr(getattr(self, noun), method)
        elif name in Namespaces.__annotations__:
            module = import_module(f"{__name__}.{name}")
            found = getattr(module, name.title())(self)
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        # Another thread may have been first.
        return vars(self).setdefault(name, found)

    def _connect_to(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings)
        self.enqueuer = Enqueuer(settings, self.handlers)

    # Registering

    @overload
    def job(self, function: Callable[Concatenate[Context, P], R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(
        self,
        *,
        key: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        backoff: Backoff | None = None,
        mode: str | None = None,
        description: str | None = None,
        arg_schema: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        retention: timedelta | None = None,
        concurrency: int | None = None,
        key_concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        limit: str | None = None,
        limit_by: str | None = None,
        approvals_needed: int = 0,
        approval_expiry: timedelta | None = None,
        approvers: Sequence[str] = (),
        delivery: Delivery | Literal["at_least_once", "at_most_once"] = Delivery.AT_LEAST_ONCE,
    ) -> "JobDecorator": ...
    def job(self, function: Any = None, **options: Any) -> Any:
        """Register a function as the handler of a definition, whose key is the function's name by
        default; raises InvalidDefinition if another function has the key."""
        decorate = JobDecorator(self, options)
        return decorate if function is None else decorate(function)

    def register_worker(
        self, key: str, function: Callable[[dict[str, Any], str, Any], Any], **options: Any
    ) -> None:
        """Register a regular `worker(job_data, job_id, queue)` function; takes the options of `job`
        except `mode`."""
        ensure_key(key)
        ensure_plain_worker(key, function)
        definition = make_definition(key, function, options)
        self.register(Handler(definition, function, ExecutionMode.THREAD, is_plain_worker=True))

    def register(self, handler: Handler) -> None:
        key = handler.definition.key
        ensure_own_key(key)
        known = self.handlers.get(key)
        if known is not None and known.function is not handler.function:
            raise InvalidDefinition(
                f"the key {key!r} is already used by {known.function.__module__}."
                f"{known.function.__qualname__}; give one of them a different key="
            )
        self.handlers[key] = handler

    # Database

    def register_definitions(self) -> None:
        """Store the definitions declared in code, once. Enqueueing does this automatically."""
        run(self.enqueuer.declared.register(), self.database)

    async def aregister_definitions(self) -> None:
        """Async version of `register_definitions`."""
        await arun(self.enqueuer.declared.register(), self.database)

    def use(self, settings: Settings) -> None:
        """Replace the settings; the database is closed, and reopened by its next use."""
        self.database.close()
        self._connect_to(settings)

    def example_payload(self, key: str) -> str:
        """An example payload, built from the names of the handler's parameters."""
        function = self.functions.get(key)
        return function.signature.example() if function else "{}"

    @property
    def definition_queues(self) -> tuple[str, ...]:
        """The queues of all registered definitions."""
        return tuple(sorted({handler.definition.queue for handler in self.handlers.values()}))

    def blocking(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine from blocking code; its connections are closed with it."""
        if _is_in_event_loop():
            coroutine.close()
            raise InputError("this would block the event loop; await the async method instead")

        async def run() -> R:
            try:
                return await coroutine
            finally:
                await self.database.close_loop()

        return asyncio.run(run())

    def api(self) -> Any:
        """The REST API as an ASGI app: `FastAPI().mount("/mainspring", app.api())`."""
        from mainspring.app.server import make_api  # noqa: PLC0415 - workers need no web server

        made = make_api(self.database, version=__version__)
        self._apis.append(made)
        return made

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Run a scheduler inside an ASGI app: `FastAPI(lifespan=app.lifespan)`."""
        from mainspring.services.housekeeping import install  # noqa: PLC0415 - slow to import

        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self.schedules.running())
                await self._show_apis(stack)
                await install(self.database, with_schedules=self.settings.default_schedules)
                yield
        finally:
            await self.database.close_loop()

    async def _show_apis(self, stack: AsyncExitStack) -> None:
        """List this process as a server if it serves the API."""
        if self._apis:
            from mainspring.app.server import visible  # noqa: PLC0415 - workers need no web server

            await stack.enter_async_context(visible(self._apis[-1]))

    def close(self) -> None:
        """Close the connections and release the embedded server."""
        self.database.close()

    async def aclose(self) -> None:
        """Async version of `close`."""
        await self.database.aclose()

    async def __aenter__(self) -> "Mainspring":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> "Mainspring":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
