"""Remote definitions that their own workers register."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from mainspring.domain.access import tokens as token_rules
from mainspring.domain.definitions import Definition, DefinitionState
from mainspring.domain.errors import InvalidDefinition, InvalidOption
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.registrations import (
    Change,
    Registration,
    decide,
    differing,
    may_register,
)
from mainspring.domain.types import Kind
from mainspring.services import definitions, idempotency
from mainspring.services.work_leases import WorkLeases
from mainspring.store import definitions as store
from mainspring.store import tokens as token_store


@dataclass(frozen=True, slots=True)
class Registered:
    """A definition as it is stored now, and in which fields that is not as the worker has it."""

    state: DefinitionState
    change: Change
    differs: Sequence[str] = ()


async def register(
    leases: WorkLeases, token: str, asked: Sequence[Registration]
) -> list[Registered]:
    """Store all of them or none; in the order in which they were given."""
    if len({each.key for each in asked}) < len(asked):
        raise InvalidOption("definitions", "name a key twice; give each definition once")
    for number, each in enumerate(asked):
        with _at(number):
            # Compiling a schema takes a while, and others ask meanwhile.
            await asyncio.to_thread(definitions.make, each.key, Kind.REMOTE, each.fields)
    async with leases.connected() as connection, connection.transaction():
        # By key, so that two workers that register the same do not wait for each other.
        for key in sorted(each.key for each in asked):
            await idempotency.lock(connection, "definition", tenant_id=None, name=key)
        await _enter(connection, token)
        registered = []
        for number, each in enumerate(asked):
            with _at(number):
                registered.append(await _register(connection, leases, each))
        return registered


@contextmanager
def _at(number: int) -> Iterator[None]:
    """Say of an error which of the definitions is wrong."""
    try:
        yield
    except InvalidDefinition as error:
        error.field = f"definitions.{number}.{error.field or 'key'}"
        raise
    except InvalidOption as error:
        raise InvalidOption(f"definitions.{number}.{error.option}", error.problem) from None


async def _enter(connection: AsyncConnection[Any], token: str) -> None:
    """As the bearer in the audit, with the rights of the owner: workers write nothing else."""
    entered = token_store.enter(token_rules.digest(token))
    await connection.execute(entered.sql, entered.params)
    await token_store.act_as_owner(connection)


async def _register(
    connection: AsyncConnection[Any], leases: WorkLeases, asked: Registration
) -> Registered:
    may_write = may_register(leases.caller)
    state = await store.get(connection, asked.key)
    if state is None:
        return await _create(connection, asked, may_write=may_write)
    known = state.definition
    if known.kind is not Kind.REMOTE:
        raise InvalidDefinition(
            f"{asked.key}: is a definition of the kind {known.kind}; register another key",
            field="key",
        )
    wanted = definitions.changed_by(known, asked.fields)
    change = decide(known, wanted, asked, may_write=may_write)
    if change is Change.UPDATED:
        return await _update(connection, asked, wanted)
    return Registered(state, change, differing(known, wanted, asked.fields))


async def _create(
    connection: AsyncConnection[Any], asked: Registration, *, may_write: bool
) -> Registered:
    if not may_write:
        raise Forbidden(
            f"there is no definition {asked.key!r}, and only a worker's token for all tenants may "
            "create one; ask an operator to run: mainspring definitions create "
            f"{asked.key} --kind remote"
        )
    await store.create(connection, definitions.make(asked.key, Kind.REMOTE, asked.fields))
    return Registered(await definitions.get(connection, asked.key), Change.CREATED)


async def _update(
    connection: AsyncConnection[Any], asked: Registration, wanted: Definition
) -> Registered:
    named = (definitions.columns_of(Kind.REMOTE, name) for name in asked.fields)
    columns = {column for each in named for column in each}
    await store.update(connection, asked.key, wanted, columns=columns)
    return Registered(await definitions.get(connection, asked.key), Change.UPDATED)
