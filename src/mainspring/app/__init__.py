"""The Python door: one `Mainspring`, a decorator, and jobs that can be enqueued and awaited.

app = Mainspring()

@app.job(queue="mail", max_attempts=5)
async def send_welcome(user_id: int) -> None: ...

send_welcome.enqueue(user_id=7)
"""

import asyncio
import difflib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from mainspring import __version__
from mainspring import settings as settings_module
from mainspring.app.approvals import Approvals
from mainspring.app.definitions import Definitions
from mainspring.app.events import Events
from mainspring.app.flows import Flow, Flows
from mainspring.app.job_functions import (
    JobDecorator,
    JobFunction,
    JobHandle,
    checked,
    make_definition,
    make_options,
)
from mainspring.app.jobs import JobOperations
from mainspring.app.limits import Limits
from mainspring.app.people import People
from mainspring.app.schedules import Schedules
from mainspring.app.secrets import Secrets
from mainspring.app.tenants import Tenants
from mainspring.app.tokens import Tokens
from mainspring.app.triggers import Triggers
from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.domain.definitions import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_TIMEOUT,
    Handler,
    ensure_own_key,
)
from mainspring.domain.errors import InputError, InvalidDefinition, UnknownDefinition
from mainspring.domain.handlers import choose_mode
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.jobs.options import EnqueueOptions, ensure_payload
from mainspring.domain.types import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DEFAULT_TENANT,
    ExecutionMode,
    JobId,
    TenantId,
)
from mainspring.runtime.worker.context import Context
from mainspring.services import jobs as services
from mainspring.services.definitions import ensure_synced
from mainspring.services.housekeeping import install
from mainspring.services.schemas import SchemaBook
from mainspring.services.secrets import seal_bulk, seal_request
from mainspring.settings import Settings
from mainspring.store import definitions as definition_store

P = ParamSpec("P")
R = TypeVar("R")


class Mainspring(JobOperations):
    """Definitions and their handlers, and the way to the database.

    Without a URL (argument or MAINSPRING_DATABASE_URL) the embedded PostgreSQL is used.
    """

    def __init__(
        self, database_url: str | None = None, *, settings: Settings | None = None
    ) -> None:
        loaded = settings or settings_module.load(database_url=database_url)
        self.settings = loaded
        self.database = Database(loaded)
        self.handlers: dict[str, Handler] = {}
        self.functions: dict[str, JobFunction[..., Any]] = {}
        self.definitions = Definitions(self)
        self.limits = Limits(self)
        self.approvals = Approvals(self)
        self.flows = Flows(self)
        self.secrets = Secrets(self)
        self.schemas = SchemaBook(self.handlers)
        self.schedules = Schedules(self)
        self.schedule = self.schedules.declare
        self.launcher = self.schedules.launcher
        self.tenants, self.people, self.tokens = Tenants(self), People(self), Tokens(self)
        self.register_launcher = self.schedules.register_launcher
        self.events, self.triggers = Events(self), Triggers(self)
        self.emit, self.aemit = self.events.emit, self.events.aemit
        self._synced: frozenset[str] = frozenset()

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
    ) -> "JobDecorator": ...
    def job(self, function: Any = None, **options: Any) -> Any:
        """Register a function as the handler of a definition; its name is the key by default."""
        decorate = JobDecorator(self, options)
        return decorate if function is None else decorate(function)

    def register_worker(
        self, key: str, function: Callable[[dict[str, Any], str, Any], Any], **options: Any
    ) -> None:
        """Register a plain `worker(job_data, job_id, queue)` function."""
        definition = make_definition(key, function, options)
        mode = choose_mode(key, function, None)
        if mode is not ExecutionMode.THREAD:
            raise InvalidDefinition(f"{key}: worker(job_data, job_id, queue) is a plain function")
        self.register(Handler(definition, function, mode, is_plain_worker=True))

    def register(self, handler: Handler) -> None:
        key = handler.definition.key
        ensure_own_key(key)
        known = self.handlers.get(key)
        if known is not None and known.function is not handler.function:
            raise InvalidDefinition(
                f"the key {key!r} is taken by {known.function.__module__}."
                f"{known.function.__qualname__}; give one of them another key="
            )
        self.handlers[key] = handler

    # Enqueueing

    def enqueue(self, key: str, payload: dict[str, Any], **options: Any) -> JobHandle:
        """Enqueue by key, for definitions whose code is elsewhere."""
        connection = options.pop("connection", None)
        return self.enqueue_payload(key, payload, make_options(options), connection=connection)

    async def aenqueue(self, key: str, payload: dict[str, Any], **options: Any) -> JobHandle:
        """The same from async code."""
        connection = options.pop("connection", None)
        return await self.aenqueue_payload(
            key, payload, make_options(options), connection=connection
        )

    async def enqueue_many(
        self,
        job: "JobFunction[..., Any] | str",
        payloads: Iterable[dict[str, Any]],
        *,
        dedupe_keys: Sequence[str | None] | None = None,
        connection: object = None,
        **options: Any,
    ) -> list[JobId]:
        """One job a payload, in one transaction; one whose dedupe key is taken is left out."""
        payloads = list(payloads)
        bulk = self._plan_many(job, payloads, options, dedupe_keys=dedupe_keys)
        await self.async_definitions()
        await self.schemas.aensure(self.database, bulk.definition, payloads)
        bulk = self._sealed_bulk(bulk, payloads)
        try:
            return await services.aenqueue_bulk(self.database, bulk, connection)
        except UnknownDefinition as error:
            raise self._suggest(error) from None

    def enqueue_many_sync(
        self,
        job: "JobFunction[..., Any] | str",
        payloads: Iterable[dict[str, Any]],
        *,
        dedupe_keys: Sequence[str | None] | None = None,
        connection: object = None,
        **options: Any,
    ) -> list[JobId]:
        """The same from plain code."""
        payloads = list(payloads)
        bulk = self._plan_many(job, payloads, options, dedupe_keys=dedupe_keys)
        self.note_definitions()
        self.schemas.ensure(self.database, bulk.definition, payloads)
        bulk = self._sealed_bulk(bulk, payloads)
        try:
            return services.enqueue_bulk(self.database, bulk, connection)
        except UnknownDefinition as error:
            raise self._suggest(error) from None

    def _plan_many(
        self,
        job: "JobFunction[..., Any] | str",
        payloads: list[dict[str, Any]],
        options: dict[str, Any],
        *,
        dedupe_keys: Sequence[str | None] | None,
    ) -> services.Bulk:
        if isinstance(job, JobFunction):
            for payload in payloads:
                if not (isinstance(payload, dict) and job.signature.fits(payload)):
                    ensure_payload(payload)
                    job.signature.payload_of((), payload)
        return services.plan_bulk(
            job.key if isinstance(job, JobFunction) else job,
            payloads,
            make_options(options),
            limit=self.settings.max_payload_bytes,
            dedupe_keys=dedupe_keys,
        )

    def enqueue_payload(
        self,
        key: str,
        payload: object,
        options: EnqueueOptions = services.PLAIN,
        *,
        connection: object = None,
    ) -> JobHandle:
        limit = self.settings.max_payload_bytes
        request = services.plan_enqueue(key, payload, options, limit=limit)
        if self.needs_sync:
            self.note_definitions()
        self.schemas.ensure(self.database, key, (payload,))
        request = self._sealed(request, payload)
        try:
            job_id, is_new = services.enqueue(self.database, request, connection)
        except UnknownDefinition as error:
            raise self._suggest(error) from None
        return JobHandle(job_id, is_new, options.tenant_id, self)

    async def aenqueue_payload(
        self,
        key: str,
        payload: object,
        options: EnqueueOptions = services.PLAIN,
        *,
        connection: object = None,
    ) -> JobHandle:
        limit = self.settings.max_payload_bytes
        request = services.plan_enqueue(key, payload, options, limit=limit)
        if self.needs_sync:
            await self.async_definitions()
        await self.schemas.aensure(self.database, key, (payload,))
        request = self._sealed(request, payload)
        try:
            job_id, is_new = await services.aenqueue(self.database, request, connection)
        except UnknownDefinition as error:
            raise self._suggest(error) from None
        return JobHandle(job_id, is_new, options.tenant_id, self)

    def flow(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> Flow:
        """Jobs that wait for each other, to be enqueued together."""
        return Flow(self, name, TenantId(tenant_id))

    def _sealed(self, request: services.Request, payload: object) -> services.Request:
        if paths := self.schemas.secret_paths(request.definition):
            return seal_request(request, payload, paths, settings=self.settings)
        return request

    def _sealed_bulk(self, bulk: services.Bulk, payloads: list[dict[str, Any]]) -> services.Bulk:
        if paths := self.schemas.secret_paths(bulk.definition):
            return seal_bulk(bulk, payloads, paths, settings=self.settings)
        return bulk

    def enqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> JobHandle:
        return self.enqueue(*checked(job, payload), **options)

    async def aenqueue_followup(
        self, job: Any, payload: dict[str, Any], **options: Any
    ) -> JobHandle:
        return await self.aenqueue(*checked(job, payload), **options)

    # Living

    @property
    def needs_sync(self) -> bool:
        return len(self.handlers) != len(self._synced)

    def note_definitions(self) -> None:
        """Store the definitions declared in code, once."""
        if self.needs_sync:
            ensure_synced(self.database.run(self._declared()))
            self._synced = frozenset(self.handlers)

    async def async_definitions(self) -> None:
        if self.needs_sync:
            ensure_synced(await self.database.arun(self._declared()))
            self._synced = frozenset(self.handlers)

    def _declared(self) -> Call:
        return definition_store.sync([handler.definition for handler in self.handlers.values()])

    def use(self, settings: Settings) -> None:
        """Replace the settings; the database is let go and reopened by its next use."""
        self.database.close()
        self.settings = settings
        self.database = Database(settings)
        self._synced = frozenset()

    def example_payload(self, key: str) -> str:
        """A payload a person can start from, by the names of the handler's parameters."""
        function = self.functions.get(key)
        return function.signature.example() if function else "{}"

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of all registered definitions."""
        return tuple(sorted({handler.definition.queue for handler in self.handlers.values()}))

    def blocking(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine from plain code; its connections end with it."""
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

        return make_api(self.database, version=__version__)

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Runs a scheduler inside an ASGI app: `FastAPI(lifespan=app.lifespan)`."""
        try:
            async with self.schedules.running():
                await install(self.database, with_schedules=self.settings.default_schedules)
                yield
        finally:
            await self.database.close_loop()

    def close(self) -> None:
        """Let go of connections and of the embedded server."""
        self.database.close()

    async def aclose(self) -> None:
        await self.database.aclose()

    async def __aenter__(self) -> "Mainspring":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> "Mainspring":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _suggest(self, error: UnknownDefinition) -> UnknownDefinition:
        close = difflib.get_close_matches(error.key, self.handlers, n=1)
        return UnknownDefinition(error.key, close[0] if close else None)


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
