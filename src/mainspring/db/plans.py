"""Work that needs answers from the database, written once for blocking and async callers.

A plan is a generator. It yields a step for each thing it needs from the database, is sent what the
step gave, and returns its result; what a step raises is raised where the plan yielded it.

    def count(key: str) -> Plan[int]:
        ((number,),) = yield Statement(store.count(key))
        return number

    run(count("send"), database)          blocking
    await arun(count("send"), session)    async
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from mainspring.db import calls
from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.db.sessions import ServiceSession, run_call
from mainspring.domain.errors import MainspringError

T = TypeVar("T")


class Step(Protocol):
    """One thing that a plan needs from the database."""

    def run(self, database: Database) -> Any: ...

    async def arun(self, session: ServiceSession) -> Any: ...


Plan = Generator[Step, Any, T]


class Statement(NamedTuple):
    """Gives its rows; runs in the transaction of the caller's connection, if there is one."""

    call: Call
    connection: object = None

    def run(self, database: Database) -> list[tuple[Any, ...]]:
        return database.run(self.call, self.connection)

    async def arun(self, session: ServiceSession) -> list[tuple[Any, ...]]:
        if self.connection is None:
            return await run_call(session, self.call)
        return await calls.arun(self.connection, self.call)


class Statements(NamedTuple):
    """Gives the rows of all; runs in one transaction, that of the caller's connection if given."""

    calls: Sequence[Call]
    connection: object = None

    def run(self, database: Database) -> list[tuple[Any, ...]]:
        if self.connection is None:
            return database.run_all(self.calls)
        return [row for call in self.calls for row in database.run(call, self.connection)]

    async def arun(self, session: ServiceSession) -> list[tuple[Any, ...]]:
        if self.connection is not None:
            return [row for call in self.calls for row in await calls.arun(self.connection, call)]
        async with session.transaction() as ours:
            return [row for call in self.calls for row in await run_call(ours, call)]


def run(plan: Plan[T], database: Database) -> T:
    """The result of a plan, from blocking code."""
    try:
        step = next(plan)
        while True:
            try:
                answer = step.run(database)
            except MainspringError as error:
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def arun(plan: Plan[T], session: ServiceSession) -> T:
    """Async version of the function above."""
    try:
        step = next(plan)
        while True:
            try:
                answer = await step.arun(session)
            except MainspringError as error:
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result
