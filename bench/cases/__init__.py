"""What is measured. Each case is a function from a bench and a system to measurements."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.benches import Bench
from bench.cases import (
    api,
    commands,
    drain,
    enqueue,
    failures,
    latency,
    limits,
    memory,
    schedules,
    shares,
    sustained,
)
from bench.catalogue import System
from bench.measurements import Measurement

Case = Callable[[Bench, System], list[Measurement]]

CASES: Final[Mapping[str, Case]] = {
    "single_enqueue": enqueue.single,
    "bulk_enqueue": enqueue.bulk,
    "fire_due": schedules.fire_due,
    "drain_1": drain.one_worker,
    "drain_beside_limited": limits.beside,
    "drain_keys": limits.by_key,
    "drain_failing": failures.once,
    "drain_100_tenants": shares.hundred_tenants,
    "drain_history": drain.with_history,
    "drain_backlog": drain.with_backlog,
    "drain_2": drain.two_workers,
    "fair_share": shares.newcomers,
    "latency": latency.measure,
    "sustained": sustained.measure,
    "drain_snapshot": drain.with_snapshot,
    "schedule_lateness": schedules.lateness,
    "command_spawn": commands.spawn,
    "tick_million": schedules.tick,
    "memory": memory.measure,
    "api_post": api.post,
    "api_lists": api.lists,
    "api_streams": api.streams,
}
ONLY_OURS: Final = frozenset(
    {
        *("drain_100_tenants", "drain_beside_limited", "drain_failing", "drain_keys"),
        "fair_share",
        *("memory", "tick_million", "api_lists", "api_streams"),
    }
)
WITHOUT_RIVALS: Final = frozenset({"api_post", "command_spawn"})
SCHEDULED: Final = frozenset({"fire_due", "schedule_lateness", "tick_million"})
# What takes a second or two says little when it is measured once in an hour; and what one in a
# hundred waits for is the disk, which stumbles at one time more than at another.
AGAIN: Final = (
    *("latency", "bulk_enqueue", "latency", "single_enqueue"),
    *("latency", "bulk_enqueue", "latency", "latency"),
)
QUICK: Final = ("single_enqueue", "bulk_enqueue", "drain_1", "latency")
