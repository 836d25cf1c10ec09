"""What is measured. Each case is a function from a bench and a system to measurements."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.benches import Bench
from bench.cases import drain, enqueue, latency, memory, sustained
from bench.catalogue import System
from bench.measurements import Measurement

Case = Callable[[Bench, System], list[Measurement]]

CASES: Final[Mapping[str, Case]] = {
    "single_enqueue": enqueue.single,
    "bulk_enqueue": enqueue.bulk,
    # Next to each other, as the second and third are judged by the first.
    "drain_1": drain.one_worker,
    "drain_history": drain.with_history,
    "drain_backlog": drain.with_backlog,
    "drain_2": drain.two_workers,
    "latency": latency.measure,
    "sustained": sustained.measure,
    "drain_snapshot": drain.with_snapshot,
    "memory": memory.measure,
}
QUICK: Final = ("single_enqueue", "bulk_enqueue", "drain_1", "latency")
