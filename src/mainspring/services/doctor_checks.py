"""The checks of the doctor by id: each reads facts and lets a rule judge them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from psycopg import AsyncConnection

from mainspring.db import migrate, shipped
from mainspring.db.calls import Call
from mainspring.db.disks import disk_of
from mainspring.domain.checks import access, queue, schedules, server, sessions, tables
from mainspring.domain.checks.model import Finding
from mainspring.domain.errors.database import DatabaseError
from mainspring.settings import Settings
from mainspring.store import doctor as store
from mainspring.store import set_aside


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the database: the connection of the present check, the instant it is about (none
    is the present), what lets in whom a fix is made for (none is the login), and the server
    processes that have served the connection."""

    connection: AsyncConnection[Any]
    settings: Settings
    now: datetime | None = None
    enter: Call | None = None
    backends: set[int] = field(default_factory=set)


Check = Callable[[Look], Awaitable[list[Finding]]]


async def _settings(look: Look) -> dict[str, str]:
    return await store.settings(look.connection, server.SETTINGS)


async def _version(look: Look) -> list[Finding]:
    return server.version(*await store.version(look.connection, look.now))


async def _autovacuum(look: Look) -> list[Finding]:
    return server.autovacuum(await _settings(look))


async def _transactions(look: Look) -> list[Finding]:
    known = await store.open_transactions(look.connection, look.now)
    return sessions.transactions(known, await store.hidden_sessions(look.connection))


async def _idle(look: Look) -> list[Finding]:
    known = await store.open_transactions(look.connection, look.now)
    return sessions.idle_transactions(known, await _settings(look))


async def _prepared(look: Look) -> list[Finding]:
    return sessions.prepared(await store.prepared_transactions(look.connection, look.now))


async def _replication_slots(look: Look) -> list[Finding]:
    return sessions.replication_slots(await store.replication_slots(look.connection))


async def _standbys(look: Look) -> list[Finding]:
    return sessions.standbys(await store.standbys(look.connection))


async def _id_ages(look: Look) -> list[Finding]:
    return server.id_ages(await store.id_ages(look.connection))


async def _connections(look: Look) -> list[Finding]:
    return sessions.connections(await store.used_connections(look.connection))


async def _notifications(look: Look) -> list[Finding]:
    return server.notification_queue(await store.notification_queue(look.connection))


async def _dead_rows(look: Look) -> list[Finding]:
    return tables.dead_rows(await store.table_activity(look.connection, look.now))


async def _bloat(look: Look) -> list[Finding]:
    return tables.bloat(await store.queue_relations(look.connection))


async def invalid_indexes(look: Look) -> list[tables.InvalidIndex]:
    known = shipped.schema()
    found = await store.invalid_indexes(look.connection)
    return [tables.InvalidIndex(name, table, known.is_rebuild(name)) for name, table in found]


async def _invalid_indexes(look: Look) -> list[Finding]:
    return tables.invalid_indexes(await invalid_indexes(look), shipped.schema().indexes)


async def _foreign(look: Look) -> list[Finding]:
    known = shipped.schema()
    present = await store.storage_options(look.connection)
    ours = [name for name in present if known.options_of(name) is not None]
    found = await store.added_objects(
        look.connection,
        tables=[*ours, *known.tables],
        indexes=known.indexes,
        triggers=known.triggers,
    )
    return tables.foreign_objects([each for each in found if not known.is_rebuild(each.name)])


async def storage(look: Look) -> list[tables.Storage]:
    known = shipped.schema()
    present = await store.storage_options(look.connection)
    wanted = {name: known.options_of(name) for name in present}
    return [
        tables.Storage(name, present[name], options)
        for name, options in wanted.items()
        if options is not None
    ]


async def _storage(look: Look) -> list[Finding]:
    return tables.storage(await storage(look))


async def _statistics(look: Look) -> list[Finding]:
    return tables.statistics(await store.table_activity(look.connection, look.now))


async def _durability(look: Look) -> list[Finding]:
    return server.durability(await _settings(look))


async def _synchronous_commit(look: Look) -> list[Finding]:
    return server.synchronous_commit(await _settings(look))


async def _timeouts(look: Look) -> list[Finding]:
    return server.login_timeouts(await _settings(look))


async def _checkpoints(look: Look) -> list[Finding]:
    return server.checkpoints(await store.checkpoints(look.connection))


async def _buffers(look: Look) -> list[Finding]:
    return server.buffers(await _settings(look), await store.block_reads(look.connection))


async def _disk(look: Look) -> list[Finding]:
    if look.settings.database_url is not None:
        return []
    from mainspring.db import embedded  # noqa: PLC0415 - not for a server of your own

    folder = look.settings.data_dir or embedded.default_data_dir()
    return server.disk(disk_of(folder))


async def _pooler(look: Look) -> list[Finding]:
    known = access.Backends(look.backends, look.connection.info.backend_pid)
    return access.pooler(known, use_pooler=look.settings.use_pooler)


async def _encryption(look: Look) -> list[Finding]:
    return access.encryption(await store.own_link(look.connection))


async def _row_security(look: Look) -> list[Finding]:
    known, owner = await store.table_security(look.connection)
    ours = [each for each in known if shipped.schema().options_of(each.name) is not None]
    roles = await store.request_roles(look.connection)
    return access.row_security(roles, ours, protected=shipped.schema().protected, owner=owner)


async def _schema(look: Look) -> list[Finding]:
    nothing = access.Tampering((), ())
    try:
        await migrate.check(look.connection)
    except DatabaseError as error:
        return access.schema_state(str(error), nothing)
    if await migrate.is_ahead(look.connection):
        # The functions are those of a newer program, whose texts are not known here.
        return access.schema_state(None, nothing)
    present = await store.function_texts(look.connection)
    functions = access.changed_functions(shipped.function_texts(), present)
    active = await store.active_triggers(look.connection)
    missing = sorted(shipped.schema().triggers - active)
    return access.schema_state(None, access.Tampering(functions, missing))


async def _partitions(look: Look) -> list[Finding]:
    missing = await store.partition_gaps(look.connection, look.now)
    stray = await store.stray_rows(look.connection, look.now)
    return tables.partitions(tables.Partitions(missing, stray))


async def _leftovers(look: Look) -> list[Finding]:
    past = await store.overdue_partitions(look.connection)
    keys = await store.expired_keys(look.connection, look.now)
    return tables.leftovers(tables.Leftovers(past, keys))


async def _orphans(look: Look) -> list[Finding]:
    return queue.orphans(await store.orphaned_jobs(look.connection))


async def _waits(look: Look) -> list[Finding]:
    waits = await store.stuck_waits(look.connection, look.now)
    asides = await set_aside.list_aside(look.connection)
    workers = await store.live_workers(look.connection)
    return queue.stuck_waits(waits, asides, len(workers))


async def _unserved(look: Look) -> list[Finding]:
    queues = await store.unserved_queues(look.connection)
    return queue.unserved(queues, await store.live_workers(look.connection, look.now))


async def _unhandled(look: Look) -> list[Finding]:
    return queue.unhandled(await store.unhandled_jobs(look.connection, look.now))


async def _schedules(look: Look) -> list[Finding]:
    late = await store.overdue_schedules(look.connection, look.now)
    broken = await store.broken_schedules(look.connection)
    return [*schedules.overdue(late), *schedules.broken(broken)]


async def _herds(look: Look) -> list[Finding]:
    return schedules.herds(await store.schedule_herds(look.connection, look.now))


async def _long_runs(look: Look) -> list[Finding]:
    return schedules.long_runs(await store.long_runs(look.connection))


async def _losses(look: Look) -> list[Finding]:
    return queue.losses(await store.lost_attempts(look.connection, look.now))


async def _events(look: Look) -> list[Finding]:
    waiting = await store.waiting_events(look.connection, look.now)
    return schedules.events(waiting, await store.failing_triggers(look.connection))


async def _tokens(look: Look) -> list[Finding]:
    return access.tokens(await store.token_ages(look.connection, look.now))


async def _versions(look: Look) -> list[Finding]:
    return queue.versions(await store.live_workers(look.connection, look.now))


async def _locks(look: Look) -> list[Finding]:
    return sessions.lock_waits(await store.lock_waits(look.connection, look.now))


async def _unused(look: Look) -> list[Finding]:
    limits = await store.unused_limits(look.connection)
    return tables.unused(limits, await store.key_relations(look.connection))


async def _largest(look: Look) -> list[Finding]:
    kept = await store.default_retention(look.connection)
    return tables.largest(await store.largest_relations(look.connection), kept)


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "D01": _version,
        "D02": _autovacuum,
        "D03": _transactions,
        "D04": _idle,
        "D05": _prepared,
        "D06": _replication_slots,
        "D07": _standbys,
        "D08": _id_ages,
        "D09": _connections,
        "D10": _notifications,
        "D11": _dead_rows,
        "D12": _bloat,
        "D13": _invalid_indexes,
        "D14": _foreign,
        "D15": _storage,
        "D16": _statistics,
        "D17": _durability,
        "D18": _synchronous_commit,
        "D19": _timeouts,
        "D20": _checkpoints,
        "D21": _buffers,
        "D22": _disk,
        "D23": _pooler,
        "D24": _encryption,
        "D25": _row_security,
        "D27": _schema,
        "D28": _partitions,
        "D29": _leftovers,
        "D31": _orphans,
        "D32": _waits,
        "D33": _unserved,
        "D34": _unhandled,
        "D35": _schedules,
        "D36": _herds,
        "D37": _long_runs,
        "D39": _losses,
        "D40": _events,
        "D41": _tokens,
        "D43": _versions,
        "D45": _locks,
        "D46": _unused,
        "D48": _largest,
    }
)
