"""What callers do while things break, and what each was told came of it."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import psycopg
from psycopg.types.json import Jsonb

from chaos.systems import System
from mainspring.client import Client
from mainspring.domain.errors.client import ApiError, ServerUnreachable

_SERVER_ERROR = 500
_PACE_SECONDS = 0.02
_CONNECT_SECONDS = 3
_STATEMENT_TIMEOUT = "set statement_timeout = '20s'"


class Fate(StrEnum):
    """What a caller knows of its transaction."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Ledger:
    """What callers were told, by the number that each operation carries."""

    fates: dict[int, Fate] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def committed(self, kind: str) -> set[int]:
        return {
            n for n, fate in self.fates.items() if fate is Fate.COMMITTED and self.kinds[n] == kind
        }


Operation = Callable[[psycopg.Connection, random.Random, int], None]


def _enqueue(definition: str, **options: object) -> Operation:
    names = ", ".join(f"{name} => %({name})s" for name in options)
    call = f"select mainspring.enqueue(%(definition)s, %(payload)s{', ' if names else ''}{names})"

    def run(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
        payload = Jsonb({"n": n})
        values = {"definition": definition, "payload": payload, **options}
        connection.execute(call.encode(), values)

    return run


def _keyed(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
    connection.execute(
        "select mainspring.enqueue('keyed', %s)", (Jsonb({"n": n, "key": rng.randrange(5)}),)
    )


def _delayed(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
    connection.execute(
        "select mainspring.enqueue('plain', %s, delay => make_interval(secs => %s))",
        (Jsonb({"n": n}), rng.uniform(0.1, 3)),
    )


def _urgent(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
    connection.execute(
        "select mainspring.enqueue('plain', %s, priority => %s)",
        (Jsonb({"n": n}), rng.choice((1, 50, 500))),
    )


def _flow(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
    payload = {"n": n}
    steps = [
        {"definition": "step", "payload": payload},
        {"definition": "step", "payload": payload},
        {"definition": "step", "payload": payload, "after": [0, 1]},
        {"definition": "step", "payload": payload, "after": [2]},
    ]
    connection.execute("select mainspring.enqueue_flow('chaos', %s)", (Jsonb(steps),))


def _emit(connection: psycopg.Connection, rng: random.Random, n: int) -> None:
    connection.execute("select mainspring.emit('chaos.happened', %s)", (Jsonb({"n": n}),))


# What is done, and how often beside the others.
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "plain": (20, _enqueue("plain")),
    "threaded": (6, _enqueue("threaded")),
    "slow": (2, _enqueue("slow")),
    "flaky": (4, _enqueue("flaky")),
    "once": (10, _enqueue("once")),
    "limited": (4, _enqueue("limited")),
    "keyed": (4, _keyed),
    "delayed": (5, _delayed),
    "urgent": (3, _urgent),
    "flow": (2, _flow),
    "approved": (2, _enqueue("approved")),
    "event": (4, _emit),
    "other tenant": (4, _enqueue("plain", tenant="other")),
}


class Callers:
    """Threads that carry out operations until they are stopped."""

    def __init__(self, system: System, seed: int, *, threads: int = 2) -> None:
        self.ledger = Ledger()
        self._system, self._url = system, system.url
        self._lock = threading.Lock()
        self._next = 0
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed}/{each}"),), daemon=True)
            for each in range(threads)
        ]
        self._threads.append(threading.Thread(target=self._call_rest, daemon=True))
        self._threads.append(threading.Thread(target=self._approve, daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop_operations(self) -> None:
        """Nothing new; whatever awaits approval is still approved."""
        self._stopping.set()
        for thread in self._threads[:-1]:
            thread.join()

    def _run(self, rng: random.Random) -> None:
        connection: psycopg.Connection | None = None
        names = list(OPERATIONS)
        weights = [OPERATIONS[name][0] for name in names]
        while not self._stopping.wait(rng.uniform(0, 2 * _PACE_SECONDS)):
            (name,) = rng.choices(names, weights)
            is_undone = rng.random() < 0.1
            n = self._number(name)
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self._url, connect_timeout=_CONNECT_SECONDS)
                    connection.execute(_STATEMENT_TIMEOUT)
                    connection.commit()
            except psycopg.Error as error:
                self._note(n, Fate.ROLLED_BACK, error)
                continue
            self._carry_out(connection, rng, n, is_undone=is_undone)
        if connection is not None:
            connection.close()

    def _carry_out(
        self, connection: psycopg.Connection, rng: random.Random, n: int, *, is_undone: bool
    ) -> None:
        name = self.ledger.kinds[n]
        is_committing = False
        try:
            OPERATIONS[name][1](connection, rng, n)
            if is_undone:
                connection.rollback()
                self._note(n, Fate.ROLLED_BACK)
                return
            is_committing = True
            connection.commit()
            self._note(n, Fate.COMMITTED)
        except psycopg.Error as error:
            # A commit whose answer never came may have happened.
            self._note(n, Fate.UNKNOWN if is_committing else Fate.ROLLED_BACK, error)
            connection.close()

    def _call_rest(self) -> None:
        """Repeats each request with its key until it is answered: one job, whatever broke."""
        with Client(self._system.api_url, self._system.token, timeout=5) as client:
            while not self._stopping.wait(2 * _PACE_SECONDS):
                n = self._number("rest")
                self._note(n, Fate.UNKNOWN)
                while not self._stopping.is_set():
                    try:
                        client.jobs.enqueue("plain", {"n": n}, idempotency_key=f"chaos-{n}")
                    except (ServerUnreachable, ApiError) as error:
                        if isinstance(error, ApiError) and error.status < _SERVER_ERROR:
                            self.ledger.refused.append(str(error))
                            break
                        continue
                    self._note(n, Fate.COMMITTED)
                    break

    def _number(self, kind: str) -> int:
        with self._lock:
            self._next += 1
            self.ledger.kinds[self._next] = kind
            return self._next

    def _note(self, n: int, fate: Fate, error: psycopg.Error | None = None) -> None:
        with self._lock:
            self.ledger.fates[n] = fate
            if error is not None and error.sqlstate and error.sqlstate.startswith("MS"):
                self.ledger.refused.append(str(error))

    def _approve(self) -> None:
        """Approves what waits for it, for as long as the process lives."""
        pause = threading.Event()
        while not pause.wait(0.3):
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=3) as connection:
                    connection.execute(
                        "select mainspring.approve(job_id) from mainspring.jobs"
                        " where state = 'awaiting_approval' limit 20"
                    )
            except psycopg.Error:
                continue  # The database is away; the next round finds them.
