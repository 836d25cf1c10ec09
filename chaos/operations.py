"""What callers do while things break, and what each was told came of it."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import psycopg
from psycopg.types.json import Jsonb

from chaos.checks import JOBS_PER_OPERATION
from chaos.shares import LIGHT
from chaos.systems import System
from chaos.waits import HEAVY
from mainspring.client import Client
from mainspring.domain.errors.client import ApiError, ServerUnreachable

_SERVER_ERROR = 500
_NOT_FOUND = 404
_PACE_SECONDS = 0.03
_BURST_SECONDS = 10.0
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
    committed_at: dict[int, float] = field(default_factory=dict)
    delays: dict[int, float] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    looks: int = 0
    refused: list[str] = field(default_factory=list)

    def tenants(self) -> dict[int, str]:
        """The tenant that each operation named."""
        return {n: TENANTS.get(kind, "default") for n, kind in self.kinds.items()}


# Returns how many seconds later its job is due.
Operation = Callable[[psycopg.Connection, random.Random, int], float]


def _enqueue(definition: str, **options: object) -> Operation:
    names = ", ".join(f"{name} => %({name})s" for name in options)
    call = f"select mainspring.enqueue(%(definition)s, %(payload)s{', ' if names else ''}{names})"

    def run(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
        payload = Jsonb({"n": n})
        values = {"definition": definition, "payload": payload, **options}
        connection.execute(call.encode(), values)
        return 0.0

    return run


def _keyed(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
    connection.execute(
        "select mainspring.enqueue('keyed', %s)", (Jsonb({"n": n, "key": rng.randrange(5)}),)
    )
    return 0.0


def _delayed(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
    seconds = rng.uniform(0.1, 3)
    connection.execute(
        "select mainspring.enqueue('plain', %s, delay => make_interval(secs => %s))",
        (Jsonb({"n": n}), seconds),
    )
    return seconds


def _urgent(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
    connection.execute(
        "select mainspring.enqueue('plain', %s, priority => %s)",
        (Jsonb({"n": n}), rng.choice((1, 50, 500))),
    )
    return 0.0


def _flow(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
    payload = {"n": n}
    steps = [
        {"definition": "step", "payload": payload},
        {"definition": "step", "payload": payload},
        {"definition": "step", "payload": payload, "after": [0, 1]},
        {"definition": "step", "payload": payload, "after": [2]},
    ]
    connection.execute("select mainspring.enqueue_flow('chaos', %s)", (Jsonb(steps),))
    return 0.0


def _emit(tenant: str) -> Operation:
    def run(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
        connection.execute(
            "select mainspring.emit('chaos.happened', %s, %s)", (Jsonb({"n": n}), tenant)
        )
        return 0.0

    return run


def _burst(connection: psycopg.Connection, rng: random.Random, n: int) -> float:
    connection.execute(
        "select mainspring.enqueue('bulk', %s, tenant => %s) from generate_series(1, %s)",
        (Jsonb({"n": n}), HEAVY, JOBS_PER_OPERATION["burst"]),
    )
    return 0.0


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
    "event": (4, _emit("default")),
    "light": (4, _enqueue("plain", tenant=LIGHT)),
    "light once": (2, _enqueue("once", tenant=LIGHT)),
    "light event": (2, _emit(LIGHT)),
    "far": (3, _enqueue("far")),
    "burst": (1, _burst),
}
# Of operations that name another tenant than the default one.
TENANTS = {"light": LIGHT, "light once": LIGHT, "light event": LIGHT, "burst": HEAVY}


class Callers:
    """Threads that carry out operations until they are stopped."""

    def __init__(self, system: System, seed: int, *, threads: int = 2) -> None:
        self.ledger = Ledger()
        self._system, self._url = system, system.url
        self._lock = threading.Lock()
        self._next = 0
        self._last_made = 0
        self._stopping, self._closing = threading.Event(), threading.Event()
        names = [name for name in OPERATIONS if name != "burst"]
        self._threads = [
            self._thread(self._run, random.Random(f"{seed}/{each}"), names, _PACE_SECONDS)
            for each in range(threads)
        ]
        self._threads += [
            self._thread(self._run, random.Random(f"{seed}/heavy"), ["burst"], _BURST_SECONDS),
            self._thread(self._call_rest),
            self._thread(self._look),
        ]
        self._approver = self._thread(self._approve)

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        """A caller that ends by a mistake of its own fails the run, which would prove less."""

        def run() -> None:
            try:
                target(*arguments)
            except Exception as error:
                self.ledger.refused.append(f"a caller ended: {error!r}")
                raise

        return threading.Thread(target=run, daemon=True)

    def start(self) -> None:
        for thread in (*self._threads, self._approver):
            thread.start()

    def stop_operations(self) -> None:
        """Nothing new; whatever awaits approval is still approved, until `close`."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        self._closing.set()
        self._approver.join()

    def _run(self, rng: random.Random, names: list[str], pace_seconds: float) -> None:
        connection: psycopg.Connection | None = None
        weights = [OPERATIONS[name][0] for name in names]
        while not self._stopping.wait(rng.uniform(0, 2 * pace_seconds)):
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
            delay = OPERATIONS[name][1](connection, rng, n)
            if delay:
                self.ledger.delays[n] = delay
            if is_undone:
                connection.rollback()
                self._note(n, Fate.ROLLED_BACK)
                return
            is_committing = True
            connection.commit()
            self.ledger.committed_at[n] = time.time()
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
                        made = client.jobs.enqueue("plain", {"n": n}, idempotency_key=f"chaos-{n}")
                    except (ServerUnreachable, ApiError) as error:
                        if isinstance(error, ApiError) and error.status < _SERVER_ERROR:
                            self.ledger.refused.append(str(error))
                            break
                        self._stopping.wait(0.2)
                        continue
                    self._last_made = int(made.id)
                    self._note(n, Fate.COMMITTED)
                    break

    def _look(self) -> None:
        """An administrator of one tenant sees its jobs, and none of another."""
        with Client(self._system.api_url, self._system.light_token, timeout=5) as client:
            while not self._stopping.wait(1):
                try:
                    self._look_at_jobs(client)
                    if self._last_made:
                        self._look_at_job(client, self._last_made)
                except ServerUnreachable:
                    continue
                except ApiError as error:
                    if error.status < _SERVER_ERROR:
                        self.ledger.refused.append(str(error))

    def _look_at_jobs(self, client: Client) -> None:
        for job in client.jobs.page(limit=50).items:
            self.ledger.looks += 1
            if job.tenant != LIGHT:
                self.ledger.leaks.append(f"tenant {LIGHT} saw job {job.id} of {job.tenant}")

    def _look_at_job(self, client: Client, job_id: int) -> None:
        """Of another tenant: it cannot be read, canceled or deleted."""
        for act in (client.jobs.get, client.jobs.cancel, client.jobs.delete):
            try:
                act(job_id)
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
            else:
                self.ledger.leaks.append(f"tenant {LIGHT} could {act.__name__} job {job_id}")

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
        """Approves what waits for it."""
        while not self._closing.wait(0.3):
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=3) as connection:
                    connection.execute(
                        "select mainspring.approve(job_id) from mainspring.jobs"
                        " where state = 'awaiting_approval' limit 20"
                    )
            except psycopg.Error:
                continue  # The database is away; the next round finds them.
