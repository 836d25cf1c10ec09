"""What the doctor fixes by itself: what needs no judgement, and nothing that is not ours."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from psycopg import AsyncConnection

from mainspring.db import shipped
from mainspring.domain.checks.queue import StuckWait
from mainspring.domain.checks.tables import Storage, is_unanalyzed
from mainspring.services.doctor_checks import Look, invalid_indexes, storage
from mainspring.store import doctor as store
from mainspring.store import due_schedules, flows, history, recovery, waits, workers

_ONE = 1
_NONE = StuckWait("", 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction; its result is how much was done. Repeated until that is nothing, if so."""

    action: str
    run: Callable[[AsyncConnection[Any]], Awaitable[int]]
    is_repeated: bool = False

    def said(self, count: int) -> str:
        return self.action.replace("#", f"{count:,}")


Fixer = Callable[[Look], Awaitable[list[Step]]]


async def _indexes(look: Look) -> list[Step]:
    async def drop(connection: AsyncConnection[Any], name: str) -> int:
        await store.drop_invalid_index(connection, name)
        return _ONE

    return [
        Step(f"dropped the invalid index {each.name}", partial(drop, name=each.name))
        for each in await invalid_indexes(look)
        if each.is_ours
    ]


async def _storage(look: Look) -> list[Step]:
    async def restore(connection: AsyncConnection[Any], table: Storage) -> int:
        if table.missing:
            await store.set_storage(connection, table.table, table.missing)
        if table.surplus:
            await store.reset_storage(connection, table.table, table.surplus)
        return _ONE

    return [
        Step(f"set the storage parameters of mainspring.{each.table}", partial(restore, table=each))
        for each in await storage(look)
        if each.missing or each.surplus
    ]


async def _statistics(look: Look) -> list[Step]:
    async def analyze(connection: AsyncConnection[Any], name: str) -> int:
        await store.analyze(connection, name)
        return _ONE

    return [
        Step(f"analyzed mainspring.{each.table}", partial(analyze, name=each.table))
        for each in await store.table_activity(look.connection)
        if is_unanalyzed(each) and shipped.schema().options_of(each.table) is not None
    ]


async def _partitions(look: Look) -> list[Step]:
    missing = await store.partition_gaps(look.connection, look.now)
    return [Step("made # partitions", history.ensure_partitions)] if missing else []


async def _keys(look: Look) -> list[Step]:
    return [Step("removed # expired keys", history.prune_keys, is_repeated=True)]


async def _orphans(look: Look) -> list[Step]:
    async def adopt(connection: AsyncConnection[Any]) -> int:
        return len(await recovery.adopt_orphans(connection))

    return [Step("made the jobs of # unknown workers recoverable", adopt, is_repeated=True)]


async def _waits(look: Look) -> list[Step]:
    known = {each.wait: each for each in await store.stuck_waits(look.connection, look.now)}
    definitions = known.get("handler", _NONE).definitions
    steps = {
        "time": Step("ended # waits for a time", _end_times, is_repeated=True),
        "turn": Step("ended # waits for a turn", _end_turns),
        "parents": Step("settled # jobs whose parents have ended", _settle, is_repeated=True),
        "handler": Step(
            "ended # waits for a handler",
            partial(_end_handlers, definitions=definitions),
            is_repeated=True,
        ),
    }
    return [step for wait, step in steps.items() if wait in known]


async def _end_times(connection: AsyncConnection[Any]) -> int:
    return await _woken(connection, await waits.promote(connection))


async def _end_handlers(connection: AsyncConnection[Any], definitions: Sequence[str]) -> int:
    return await _woken(connection, await waits.release_known(connection, definitions, []))


async def _end_turns(connection: AsyncConnection[Any]) -> int:
    before = await _stuck_turns(connection)
    await due_schedules.release_turns(connection)
    return before - await _stuck_turns(connection)


async def _stuck_turns(connection: AsyncConnection[Any]) -> int:
    found = await store.stuck_waits(connection)
    return sum(each.count for each in found if each.wait == "turn")


async def _settle(connection: AsyncConnection[Any]) -> int:
    return (await flows.settle(connection, None)).total


async def _woken(connection: AsyncConnection[Any], released: list[waits.Released]) -> int:
    ready = {each.queue for each in released if not each.is_limited}
    if ready:
        await workers.wake(connection, ready)
    return len(released)


FIXES: Final[Mapping[str, Fixer]] = MappingProxyType(
    {
        "D13": _indexes,
        "D15": _storage,
        "D16": _statistics,
        "D28": _partitions,
        "D29": _keys,
        "D31": _orphans,
        "D32": _waits,
    }
)
