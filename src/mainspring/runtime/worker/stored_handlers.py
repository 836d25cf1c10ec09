"""Handlers of definitions that need no code, loaded when a job of theirs is first claimed."""

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from psycopg import AsyncConnection

from mainspring.db.role_logins import RoleLogins
from mainspring.domain.definitions import Definition, Handler
from mainspring.domain.errors import InvalidDefinition
from mainspring.domain.jobs.outcomes import Fail
from mainspring.domain.types import ExecutionMode, Kind
from mainspring.runtime.executors.commands import CommandExecutor
from mainspring.runtime.executors.functions import FunctionExecutor
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.environment import ExecutionEnvironment
from mainspring.runtime.worker.reporter import Reporter
from mainspring.settings import Settings
from mainspring.store import definitions
from mainspring.store.definitions import Version

_MOST_KNOWN = 10_000


class Executor(Protocol):
    """Runs the jobs of one kind."""

    def __call__(self, job: ClaimedJob, /, *, definition: Definition) -> Awaitable[Any]: ...


def executors(
    environment: ExecutionEnvironment, reporter: Reporter, settings: Settings, *, url: str
) -> dict[Kind, Executor]:
    """Of the kinds that need no code; commands only where their programs are allowed."""
    chosen: dict[Kind, Executor] = {
        Kind.SQL: FunctionExecutor(environment.async_calls, RoleLogins(url, settings)).run
    }
    if settings.command_paths:
        chosen[Kind.COMMAND] = CommandExecutor(
            reporter,
            directories=settings.command_paths,
            variables=settings.command_variables,
            grace_seconds=settings.cancel_grace_seconds,
        ).run
    return chosen


class StoredHandlers:
    """By key and version. A version never changes, so what is known stays true."""

    def __init__(self, executors: Mapping[Kind, Executor]) -> None:
        self.kinds = tuple(executors)
        self._executors = executors
        self._known: dict[Version, Handler | None] = {}
        self._remote: set[Version] = set()

    def get(self, job: ClaimedJob) -> Handler | None:
        return self._known.get((job.definition, job.version))

    def has_looked_up(self, job: ClaimedJob) -> bool:
        """Whether its definition has been looked up, found or not."""
        return (job.definition, job.version) in self._known

    def is_remote(self, job: ClaimedJob) -> bool:
        """Whether its definition has been looked up, and its jobs are run by remote workers."""
        return (job.definition, job.version) in self._remote

    async def load(self, connection: AsyncConnection[Any], versions: Collection[Version]) -> None:
        found = await definitions.load_versions(connection, versions)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
            self._remote.clear()
        for version in versions:
            self._known[version] = self._handler(found.get(version))
        self._remote |= {version for version, known in found.items() if known.kind is Kind.REMOTE}

    def _handler(self, definition: Definition | None) -> Handler | None:
        if definition is None or definition.kind not in self._executors:
            return None
        function = partial(self._executors[definition.kind], definition=definition)
        try:
            return Handler(definition, function, ExecutionMode.STORED)
        except InvalidDefinition as error:  # Written by an SQL client.
            bare = replace(definition, arg_schema=None)
            return Handler(bare, partial(_fail, reason=str(error)), ExecutionMode.STORED)


async def _fail(_: ClaimedJob, reason: str) -> Fail:
    return Fail(reason)
