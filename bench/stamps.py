"""The time from the start of an enqueue call to the start of its handler, on an idle worker.

Counted from before the call, so it holds the enqueue's own commit: what a user waits for, and
the same for a system that notifies inside the transaction as for one that does so after it.
Handlers report when they began through a named pipe; both ends read the machine's one clock.
"""

import os
import random
import select
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.handlers import STAMP

_WARM_UP: Final = 20
_PATIENCE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = (0.02, 0.06)


@contextmanager
def pipe() -> Iterator[Path]:
    """A named pipe that never blocks a writer for want of a reader."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stamps"
        os.mkfifo(path)
        with reading(path):
            yield path


@contextmanager
def reading(path: Path) -> Iterator[int]:
    # Opened for both directions, so that neither end waits for the other to open.
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sample(enqueue: Callable[[int], None], path: Path, count: int) -> list[float]:
    """Milliseconds, one a job, of jobs enqueued one at a time with pauses between."""
    with reading(path) as descriptor:
        return [_sample_one(enqueue, descriptor, n) for n in range(_WARM_UP + count)][_WARM_UP:]


def _sample_one(enqueue: Callable[[int], None], descriptor: int, n: int) -> float:
    # The pause lets the worker write the last result and fall idle; its length varies so that
    # samples do not fall in step with anybody's timer.
    time.sleep(random.uniform(*_PAUSE_SECONDS))
    called_at = time.time()
    enqueue(n)
    return (following(descriptor) - called_at) * 1000


def following(descriptor: int) -> float:
    """When the next handler began, in seconds of the epoch; raises TimeoutError if none does."""
    ready, _, _ = select.select([descriptor], [], [], _PATIENCE_SECONDS)
    if not ready:
        raise TimeoutError(f"no handler began within {_PATIENCE_SECONDS:.0f} s")
    began_at: float = STAMP.unpack(os.read(descriptor, STAMP.size))[0]
    return began_at
