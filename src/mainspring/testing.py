"""Testing: a pytest plugin that runs jobs on the real schema, when the test says so.

manual    jobs are enqueued and stay; `drain(app)` runs what is ready, `assert_enqueued` looks
inline    inside `with inline(app):` every enqueue runs its job before it returns

Every pytest run of a machine that has Mainspring installed imports this module, so whatever it
needs beyond the standard library is imported by the function that needs it.
"""

import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

if TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.app.job_functions import JobFunction
    from mainspring.domain.jobs.model import Job
    from mainspring.domain.types import JobState
    from mainspring.runtime.worker.drain import Drain, Ran

__all__ = [
    "DrainSummary",
    "adrain",
    "assert_enqueued",
    "bind",
    "drain",
    "inline",
    "refute_enqueued",
]

T = TypeVar("T")
OnError = Literal["raise", "collect"]

_LISTED = 20
_PAGE = 500


# Fixtures


@pytest.fixture(scope="session")
def mainspring_server_url() -> Iterator[str]:
    """MAINSPRING_TEST_DATABASE_URL, or the embedded server in a folder kept for tests."""
    from mainspring.db import template_databases  # noqa: PLC0415

    given = os.environ.get("MAINSPRING_TEST_DATABASE_URL")
    if given:
        template_databases.drop_forgotten(given)
        yield given
        return
    with template_databases.throwaway_server() as url:
        yield url


@pytest.fixture
def mainspring_database_url(mainspring_server_url: str) -> Iterator[str]:
    """The URL of a fresh database that has the schema; dropped after the test."""
    from mainspring.db.template_databases import fresh_database  # noqa: PLC0415

    with fresh_database(mainspring_server_url) as url:
        yield url


@pytest.fixture
def mainspring_app(mainspring_database_url: str) -> "Iterator[Mainspring]":
    """A `Mainspring` without jobs, bound to a fresh database."""
    from mainspring.app import Mainspring  # noqa: PLC0415

    with Mainspring(mainspring_database_url) as app:
        yield app


@contextmanager
def bind(app: "Mainspring", database_url: str) -> "Iterator[Mainspring]":
    """Point your own app at another database within the block."""
    before = app.settings
    app.use(before.replaced(database_url=database_url))
    try:
        yield app
    finally:
        app.use(before)


# Running


@dataclass(frozen=True, slots=True)
class DrainSummary:
    """How many executions ended which way; a job that was retried counts once each time."""

    succeeded: int = 0
    failed: int = 0
    dead_letter: int = 0
    canceled: int = 0
    retried: int = 0
    snoozed: int = 0
    unhandled: int = 0
    errors: "tuple[BaseException, ...]" = field(default=(), repr=False)

    @property
    def total(self) -> int:
        ended = self.succeeded + self.failed + self.dead_letter + self.canceled
        return ended + self.retried + self.snoozed + self.unhandled


async def adrain(
    app: "Mainspring",
    *,
    queue: str | None = None,
    with_scheduled: bool = False,
    with_errors: OnError = "raise",
    at_most: int = 10_000,
) -> DrainSummary:
    """Run ready jobs, and those they enqueue, until none is left.

    One job at a time in the order a worker would claim them. `with_scheduled` goes on with jobs
    that wait for a time, the earliest first, as if it had come. "raise" stops at the first
    handler that raises, after its failure was reported; "collect" puts it into the summary.
    """
    counts: Counter[str] = Counter()
    errors: list[BaseException] = []
    async with await _open(app) as runner:
        while (ran := await runner.run_next(queue, with_scheduled=with_scheduled)) is not None:
            counts[ran.outcome] += 1
            if ran.error is not None and with_errors == "raise":
                break
            if ran.error is not None:
                errors.append(ran.error)
            if counts.total() >= at_most:
                raise AssertionError(_endless(ran, at_most))
    if ran is not None and ran.error is not None:
        raise ran.error
    return DrainSummary(**counts, errors=tuple(errors))


def drain(
    app: "Mainspring",
    *,
    queue: str | None = None,
    with_scheduled: bool = False,
    with_errors: OnError = "raise",
    at_most: int = 10_000,
) -> DrainSummary:
    """Blocking version of `adrain`."""

    async def work() -> DrainSummary:
        return await adrain(
            app,
            queue=queue,
            with_scheduled=with_scheduled,
            with_errors=with_errors,
            at_most=at_most,
        )

    return _apart(app, work)


@contextmanager
def inline(app: "Mainspring") -> Iterator[None]:
    """Within the block, an enqueue runs its job before it returns, and raises what it raises.

    A job with a delay stays queued. One enqueued with `connection=` runs at the next enqueue,
    or at the end of the block, after its transaction was committed.
    """
    jobs = _InlineJobs(app)
    replaced = ("enqueue_payload", "aenqueue_payload", "enqueue_many", "aenqueue_many")
    for name in replaced:
        setattr(app, name, getattr(jobs, name))
    try:
        yield
        _apart(app, jobs.run_all)
    finally:
        for name in replaced:
            delattr(app, name)


class _InlineJobs:
    """Stands in for the app's ways to enqueue; each uses the one it stands in for."""

    def __init__(self, app: "Mainspring") -> None:
        self._app, self._class = app, type(app)
        self._waiting: list[tuple[Any, Any]] = []

    def enqueue_payload(self, *args: Any, **options: Any) -> Any:
        handle = self._class.enqueue_payload(self._app, *args, **options)
        self._waiting.append((handle.tenant_id, handle.id))
        _apart(self._app, self.run_all)
        return handle

    async def aenqueue_payload(self, *args: Any, **options: Any) -> Any:
        handle = await self._class.aenqueue_payload(self._app, *args, **options)
        self._waiting.append((handle.tenant_id, handle.id))
        await self.run_all()
        return handle

    def enqueue_many(self, *args: Any, **options: Any) -> Any:
        job_ids = self._class.enqueue_many(self._app, *args, **options)
        self._wait_for(job_ids, args, options)
        _apart(self._app, self.run_all)
        return job_ids

    async def aenqueue_many(self, *args: Any, **options: Any) -> Any:
        job_ids = await self._class.aenqueue_many(self._app, *args, **options)
        self._wait_for(job_ids, args, options)
        await self.run_all()
        return job_ids

    def _wait_for(
        self, job_ids: list[Any], args: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        job = args[0] if args else options["job"]
        tenant_id = {**getattr(job, "given", {}), **options}.get("tenant_id", "default")
        self._waiting.extend((tenant_id, job_id) for job_id in job_ids)

    async def run_all(self) -> None:
        """Run what is committed; what is not waits for the next time."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        async with await _open(self._app) as runner:
            for tenant_id, job_id in waiting:
                ran = await runner.run_job(tenant_id, job_id)
                if ran is None and not await runner.is_there(tenant_id, job_id):
                    self._waiting.append((tenant_id, job_id))
                elif ran is not None and ran.error is not None:
                    raise ran.error


# Looking


def assert_enqueued(
    app: "Mainspring",
    job: "JobFunction[..., Any] | str",
    /,
    *,
    queue: str | None = None,
    priority: int | None = None,
    tenant_id: str = "default",
    state: "JobState | None" = None,
    scheduled_for: datetime | None = None,
    delta: timedelta = timedelta(seconds=1),
    **payload: Any,
) -> "Job":
    """The newest matching job, waiting, running or finished; its payload may contain more."""
    wanted = _Wanted(_key(job), queue, priority, state, scheduled_for, delta, payload)
    found = _jobs_of(app, tenant_id)
    for each in found:
        if wanted.fits(each):
            return each
    pytest.fail(f"no job {wanted} was enqueued{_instead(found)}", pytrace=False)


def refute_enqueued(
    app: "Mainspring",
    job: "JobFunction[..., Any] | str",
    /,
    *,
    queue: str | None = None,
    priority: int | None = None,
    tenant_id: str = "default",
    state: "JobState | None" = None,
    scheduled_for: datetime | None = None,
    delta: timedelta = timedelta(seconds=1),
    **payload: Any,
) -> None:
    """Fail if there is a matching job, waiting, running or finished."""
    wanted = _Wanted(_key(job), queue, priority, state, scheduled_for, delta, payload)
    found = [each for each in _jobs_of(app, tenant_id) if wanted.fits(each)]
    if found:
        pytest.fail(f"a job {wanted} was enqueued:{_listed(found)}", pytrace=False)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a job must be like; None says nothing."""

    definition: str
    queue: str | None
    priority: int | None
    state: "JobState | None"
    scheduled_for: datetime | None
    delta: timedelta
    payload: Mapping[str, Any]

    def fits(self, job: "Job") -> bool:
        facts = ("definition", "queue", "priority", "state")
        return (
            all(getattr(self, name) in (None, getattr(job, name)) for name in facts)
            and (
                self.scheduled_for is None
                or abs(job.scheduled_for - self.scheduled_for) <= self.delta
            )
            and self.payload.items() <= job.payload.items()
        )

    def __str__(self) -> str:
        said = [self.definition]
        for name in ("queue", "priority", "state", "scheduled_for"):
            if (value := getattr(self, name)) is not None:
                said.append(f"{name}={value}")
        said.extend(f"{name}={value!r}" for name, value in self.payload.items())
        return f"({', '.join(said)})"


def _key(job: "JobFunction[..., Any] | str") -> str:
    return job if isinstance(job, str) else job.key


def _jobs_of(app: "Mainspring", tenant_id: str) -> "list[Job]":
    """Every job of the tenant, the newest first."""

    async def read() -> "list[Job]":
        found: list[Job] = []
        while True:
            before = found[-1].id if found else None
            page = await app.jobs.alist(tenant_id=tenant_id, before=before, limit=_PAGE)
            found.extend(page)
            if len(page) < _PAGE:
                return found

    return _apart(app, read)


def _instead(jobs: "list[Job]") -> str:
    return f"; these were:{_listed(jobs)}" if jobs else "; nothing was"


def _listed(jobs: "list[Job]") -> str:
    lines = [
        f"\n  {job.id} {job.definition} {job.payload} ({job.state}, queue {job.queue}, "
        f"priority {job.priority}, scheduled for {job.scheduled_for:%Y-%m-%d %H:%M:%S %Z})"
        for job in jobs[:_LISTED]
    ]
    if len(jobs) > _LISTED:
        lines.append(f"\n  ... and {len(jobs) - _LISTED} more")
    return "".join(lines)


def _endless(ran: "Ran", at_most: int) -> str:
    return (
        f"{at_most} executions and jobs are still ready; the last was job {ran.job.id} "
        f"({ran.job.definition}, {ran.outcome}). If that is expected, raise at_most="
    )


async def _open(app: "Mainspring") -> "Drain":
    from mainspring import __version__  # noqa: PLC0415
    from mainspring.runtime.worker.drain import Drain  # noqa: PLC0415

    await app.aregister_definitions()
    return Drain(
        app.database.url,
        app.handlers,
        settings=app.settings,
        enqueuer=app,
        version=__version__,
    )


def _apart(app: "Mainspring", work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run async work from blocking code; in a thread, since this one may run an event loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="mainspring-test") as thread:
        return thread.submit(lambda: app.blocking(work())).result()
