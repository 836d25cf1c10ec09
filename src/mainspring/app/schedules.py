"""Schedules: declared on a job, or created and changed by name.

@app.schedule("0 2 * * *", zone="America/New_York", catch_up="all")
@app.job
async def nightly() -> None: ...

await app.schedules.apause("nightly", until=tomorrow)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from mainspring import __version__
from mainspring.app.job_functions import JobFunction
from mainspring.app.namespaces import App, Namespace
from mainspring.app.preparation import prepare
from mainspring.db.blocking_sessions import BlockingSession, at_once
from mainspring.db.caller_sessions import CallerSession
from mainspring.db.sessions import Session
from mainspring.domain.errors import InvalidPayload, InvalidSchedule, InvalidTemplate
from mainspring.domain.filters import Several
from mainspring.domain.schedules.fields import ScheduleFields
from mainspring.domain.schedules.model import ScheduleSpec, ScheduleState
from mainspring.domain.schedules.timing import Fire
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.runtime.scheduler.launchers import Launcher
from mainspring.services import backfills, definitions
from mainspring.services import schedules as services
from mainspring.services.backfills import Filled
from mainspring.services.drafts import ensure_draft
from mainspring.services.payloads import PayloadRules
from mainspring.services.schedules import Scope
from mainspring.store.schedules import Triggered
from mainspring.store.slots import Slot

if TYPE_CHECKING:
    from mainspring.runtime.scheduler.scheduler import Scheduler

P = ParamSpec("P")
T = TypeVar("T")
Job = TypeVar("Job", bound="JobFunction[..., Any]")
LauncherClass = TypeVar("LauncherClass", bound=type[Launcher])

# Inside the class `list` is one of its methods.
States = list[ScheduleState]
Slots = list[Slot]
Fires = list[Fire]
Fillings = list[Filled]


class ScheduleChanges(ScheduleFields, total=False):
    """What an update can change."""

    name: str
    definition: JobFunction[..., Any] | str


def _blocking(
    method: Callable[Concatenate["Schedules", P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Schedules", P], T]:
    """The blocking twin of an async method; it takes blocking connections."""

    @wraps(method)
    def run(self: "Schedules", /, *args: P.args, **kwargs: P.kwargs) -> T:
        connection = kwargs.get("connection")
        if connection is None:
            return self._app.blocking(method(self, *args, **kwargs))
        kwargs["connection"] = BlockingSession(self._app.database, connection)
        return at_once(method(self, *args, **kwargs))

    run.__name__ = method.__name__.removeprefix("a")
    run.__qualname__ = f"Schedules.{run.__name__}"
    return run


class Schedules(Namespace):
    """The schedules of an app: `app.schedules`."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.launchers: dict[str, type[Launcher]] = {}
        self.declared: dict[tuple[str, str], tuple[ScheduleSpec, bool]] = {}

    # Declaring

    def declare(
        self,
        timing: str | None = None,
        /,
        *,
        name: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        overwrite: bool = False,
        **fields: Unpack[ScheduleFields],
    ) -> Callable[[Job], Job]:
        """Declare a schedule for the job below; the first argument is a cron expression or "@every
        90s".

        The schedule is stored when a scheduler or a worker starts. Later manual changes are kept
        unless `overwrite` is true.
        """
        if timing is not None and not isinstance(timing, str):
            raise InvalidSchedule("cron", 'is missing: write @app.schedule("0 2 * * *")')
        if timing is not None and fields.setdefault("cron", timing) != timing:
            raise InvalidSchedule("cron", "is given twice")

        def declare(job: Job) -> Job:
            if not isinstance(job, JobFunction):
                raise InvalidSchedule("definition", "put @app.schedule above @app.job")
            chosen = name or job.key
            with _naming(chosen):
                if (tenant_id, chosen) in self.declared:
                    raise InvalidSchedule("name", "is declared twice in this app")
                spec = self._spec(chosen, {**fields, "definition": job}, tenant_id=tenant_id)
                if spec.launcher is None:
                    ensure_draft(spec.payload, PayloadRules(job.handler.schema))
            self.declared[tenant_id, chosen] = (spec, overwrite)
            return job

        return declare

    def register_launcher(self, name: str, launcher: type[Launcher]) -> None:
        """Register a launcher under the name that schedules use."""
        if not isinstance(name, str) or not name.strip():
            raise InvalidSchedule("launcher", f"needs a name, not {name!r}")
        if not (isinstance(launcher, type) and issubclass(launcher, Launcher)):
            raise InvalidSchedule("launcher", f"{launcher!r} is not a subclass of Launcher")
        if self.launchers.setdefault(name, launcher) is not launcher:
            taken = self.launchers[name]
            raise InvalidSchedule(
                "launcher", f"{name!r} is already used by {taken.__module__}.{taken.__qualname__}"
            )

    @overload
    def launcher(self, launcher: LauncherClass, /) -> LauncherClass: ...
    @overload
    def launcher(self, name: str, /) -> Callable[[LauncherClass], LauncherClass]: ...
    def launcher(self, given: Any, /) -> Any:
        """Register the class below as a launcher, under its own name or the given one."""
        if not isinstance(given, str):
            self.register_launcher(getattr(given, "__name__", "launcher"), given)
            return given

        def register(launcher: LauncherClass) -> LauncherClass:
            self.register_launcher(given, launcher)
            return launcher

        return register

    # Making and steering

    async def acreate(
        self,
        name: str,
        definition: JobFunction[..., Any] | str,
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
        **fields: Unpack[ScheduleFields],
    ) -> ScheduleState:
        """Create a schedule; `fields` are those of `ScheduleSpec`. Raises DuplicateSchedule if the
        name is taken."""
        spec = self._spec(name, {**fields, "definition": definition}, tenant_id=tenant_id)
        scope = self._scope(tenant_id, connection)
        await self._ensure_definition(scope, spec.definition)
        return await services.create(scope, spec, has_zone="zone" in fields)

    async def aupdate(
        self,
        name: str,
        /,
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
        **changes: Unpack[ScheduleChanges],
    ) -> ScheduleState:
        """Update some fields; a new timing or condition replaces the old one."""
        given, scope = self._named(changes), self._scope(tenant_id, connection)
        if "definition" in given:
            await self._ensure_definition(scope, given["definition"])
        return await services.update(scope, name, given)

    async def aenable(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> ScheduleState:
        """Enable a schedule from now on; its failure count is reset."""
        return await services.update(self._scope(tenant_id), name, {"enabled": True})

    async def adisable(
        self, name: str, reason: str | None = None, *, tenant_id: str = DEFAULT_TENANT
    ) -> ScheduleState:
        """Disable a schedule; the reason is shown until it is enabled."""
        changes = {"enabled": False, "disabled_reason": reason}
        return await services.steer(self._scope(tenant_id), name, changes)

    async def apause(
        self, name: str, until: datetime | None = None, *, tenant_id: str = DEFAULT_TENANT
    ) -> ScheduleState:
        """Pause a schedule, by default until it is resumed; missed slots are not caught up."""
        if until is None:
            return await self.adisable(name, "paused", tenant_id=tenant_id)
        return await services.pause(self._scope(tenant_id), name, until)

    async def aresume(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> ScheduleState:
        """Resume a paused schedule, from now on."""
        changes = {"enabled": True, "paused_until": None}
        return await services.update(self._scope(tenant_id), name, changes)

    async def adelete(
        self, name: str, *, tenant_id: str = DEFAULT_TENANT, connection: object = None
    ) -> None:
        """Delete a schedule with its history; its jobs are kept."""
        await services.delete(self._scope(tenant_id, connection), name)

    async def atrigger(
        self,
        name: str,
        *,
        slot: datetime | None = None,
        force: bool = False,
        wait: timedelta | None = None,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
    ) -> Triggered:
        """Fire a schedule now, in a slot of its own, or claim the given past slot, which must have
        no job yet; `force` skips its condition.

        If a scheduler has to check the condition, the outcome is pending unless it decides
        within `wait`.
        """
        scope = self._scope(tenant_id, connection)
        return await services.trigger(scope, name, force=force, wait=wait, slot=slot)

    async def abackfill(
        self,
        name: str,
        start: datetime,
        end: datetime,
        *,
        limit: int = 1000,
        dry_run: bool = False,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Fillings:
        """Enqueue the past slots in a range that had no job; returns each slot with its job.

        Conditions are not checked. With `dry_run` nothing is written and there are no jobs.
        """
        scope = self._scope(tenant_id)
        return await backfills.backfill(scope, name, start, end=end, limit=limit, dry_run=dry_run)

    # Looking

    async def aget(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> ScheduleState:
        """One schedule with its results so far; raises ScheduleNotFound."""
        return await services.get(self._scope(tenant_id), name)

    async def alist(
        self,
        *,
        after: str | None = None,
        enabled: bool | None = None,
        definition: Several[str] = None,
        limit: int = 50,
        tenant_id: str = DEFAULT_TENANT,
    ) -> States:
        """Schedules by name; pass the last name as `after` for the next page."""
        filters = {"after": after, "enabled": enabled, "definition": definition}
        return await services.list_schedules(self._scope(tenant_id), **filters, limit=limit)

    async def ahistory(
        self,
        name: str,
        *,
        before: datetime | None = None,
        outcome: Several[str] = None,
        limit: int = 50,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Slots:
        """The slots of a schedule, newest first; pass the last instant as `before` for the next
        page."""
        scope = self._scope(tenant_id)
        return await services.history(scope, name, before=before, outcome=outcome, limit=limit)

    async def apreview(
        self,
        name: str,
        count: int = 10,
        after: datetime | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Fires:
        """The next slots of a schedule, with a note where a clock change moves one."""
        return await services.preview(self._scope(tenant_id), name, count=count, after=after)

    # Running

    def scheduler(self) -> "Scheduler":
        """A scheduler on the app's database, not yet running."""
        from mainspring.runtime.scheduler.scheduler import (  # noqa: PLC0415 - workers need none
            Scheduler,
        )

        return Scheduler(
            self._app.database.url,
            self.launchers,
            settings=self._app.settings,
            version=__version__,
            job_queue=self._app,
        )

    async def aprepare(self) -> None:
        """Check the database and store what the code declares."""
        await prepare(self._app)

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[Scheduler]":
        """Run a scheduler in the current event loop until the block ends."""
        await self.aprepare()
        scheduler = self.scheduler()
        task = asyncio.create_task(scheduler.run(), name="mainspring scheduler")
        started = asyncio.create_task(scheduler.started.wait())
        try:
            await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield scheduler
        finally:
            started.cancel()
            scheduler.stop()
            await task

    # From blocking code

    create = _blocking(acreate)
    update = _blocking(aupdate)
    enable = _blocking(aenable)
    disable = _blocking(adisable)
    pause = _blocking(apause)
    resume = _blocking(aresume)
    delete = _blocking(adelete)
    trigger = _blocking(atrigger)
    backfill = _blocking(abackfill)
    get = _blocking(aget)
    list = _blocking(alist)
    history = _blocking(ahistory)
    preview = _blocking(apreview)
    prepare = _blocking(aprepare)

    def _scope(self, tenant_id: str, connection: object = None) -> Scope:
        ours: Session = self._app.database
        callers: Session | None = None
        if isinstance(connection, BlockingSession):
            ours, callers = BlockingSession(self._app.database), connection
        elif connection is not None:
            callers = CallerSession(connection)
        own = TenantId(tenant_id)
        return Scope(ours, self._app.settings, own, callers, self._app.database)

    def _spec(self, name: str, fields: Mapping[str, Any], *, tenant_id: str) -> ScheduleSpec:
        given = {**self._named(fields), "name": name, "tenant_id": tenant_id}
        spec = services.make_spec(given)
        function = self._app.functions.get(spec.definition)
        if function is not None and spec.launcher is None:
            function.signature.payload_of((), dict(spec.payload))
        return spec

    def _named(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields with names in place of a job and a launcher, which is registered."""
        given = dict(fields)
        if isinstance(job := given.get("definition"), JobFunction):
            given["definition"] = job.key
        if isinstance(launcher := given.get("launcher"), type):
            self.register_launcher(launcher.__name__, launcher)
            given["launcher"] = launcher.__name__
        return given

    async def _ensure_definition(self, scope: Scope, key: str) -> None:
        if scope.is_blocking:
            self._app.register_definitions()
        else:
            await self._app.aregister_definitions()
        await definitions.ensure_known(scope.committed, [key])


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors of a declaration say which schedule they are about."""
    try:
        yield
    except InvalidSchedule as error:
        raise InvalidSchedule(error.field, f"{error.problem} (schedule {name!r})") from None
    except (InvalidPayload, InvalidTemplate) as error:
        raise type(error)(f"{error} (schedule {name!r})") from None
