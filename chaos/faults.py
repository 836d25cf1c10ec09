"""What breaks, one function a fault; each ends when what it broke is whole again."""

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from signal import SIGCONT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM

import psycopg
from psycopg.types.json import Jsonb

from chaos.systems import Process, System
from chaos.waits import LEASE_SECONDS

Fault = Callable[[System, random.Random], None]

_BEYOND_THE_LEASE = 2 * LEASE_SECONDS
# After a silence, its worker has to find out and to connect again: its lease and a few seconds.
_CUT_OFF_SECONDS = LEASE_SECONDS + 2


def kill_worker(system: System, rng: random.Random) -> None:
    rng.choice(system.workers).signal(SIGKILL)
    # Its jobs come back when the lease is over, or at once where its death can be seen.
    time.sleep(LEASE_SECONDS)


def kill_every_worker(system: System, rng: random.Random) -> None:
    for worker in system.workers:
        worker.signal(SIGKILL)
    time.sleep(LEASE_SECONDS)


def stop_worker(system: System, rng: random.Random) -> None:
    rng.choice(system.workers).signal(SIGTERM)
    time.sleep(1)


def pause_worker(system: System, rng: random.Random) -> None:
    _pause(rng.choice(system.workers), rng.uniform(0.3, _BEYOND_THE_LEASE))


def kill_server(system: System, rng: random.Random) -> None:
    system.server.signal(SIGKILL)
    time.sleep(1)


def kill_scheduler(system: System, rng: random.Random) -> None:
    rng.choice(system.schedulers).signal(SIGKILL)
    time.sleep(0.5)


def pause_scheduler(system: System, rng: random.Random) -> None:
    _pause(rng.choice(system.schedulers), rng.uniform(0.3, _BEYOND_THE_LEASE))


def _pause(process: Process, seconds: float) -> None:
    with process.out():
        process.signal(SIGSTOP)
        time.sleep(seconds)
        process.signal(SIGCONT)
    time.sleep(LEASE_SECONDS)


def end_connections(system: System, rng: random.Random) -> None:
    with suppress(psycopg.Error), system.connect() as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and random() < %s",
            (rng.choice((0.2, 0.5, 1.0)),),
        )
    time.sleep(1)


def restart_database(system: System, rng: random.Random) -> None:
    """Immediate, as after a crash; whoever uses an embedded server brings it back."""
    os.kill(system.database_pid, rng.choice((SIGQUIT, SIGKILL)))
    time.sleep(0.3)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(psycopg.Error), system.connect() as connection:
            connection.execute("select 1")
            break
        time.sleep(0.1)
    time.sleep(LEASE_SECONDS)


def silent_network(system: System, rng: random.Random) -> None:
    with system.far_worker.out(and_seconds=_CUT_OFF_SECONDS):
        system.network.silence()
        time.sleep(rng.uniform(1, 4 * LEASE_SECONDS))
        system.network.restore()
    time.sleep(LEASE_SECONDS)


def address_moved(system: System, rng: random.Random) -> None:
    """The database is there all the time, so its worker has its lease and a few seconds."""
    with system.far_worker.out(and_seconds=_CUT_OFF_SECONDS):
        system.network.move()
    time.sleep(rng.uniform(_CUT_OFF_SECONDS, 3 * _CUT_OFF_SECONDS))
    system.network.restore()


def no_connections_left(system: System, rng: random.Random) -> None:
    taken: list[psycopg.Connection] = []
    with system.without_database():
        with suppress(psycopg.Error):
            while len(taken) < 300:
                taken.append(system.connect())
        system.workers[0].signal(SIGKILL)  # It has to come back, and finds no place.
        time.sleep(rng.uniform(1, 4))
        for connection in taken:
            connection.close()
    time.sleep(LEASE_SECONDS)


def slow_disk(system: System, rng: random.Random) -> None:
    """Every commit takes a tenth of a second more."""
    with suppress(psycopg.Error), system.connect() as connection:
        connection.execute("alter system set commit_delay = 100000")
        connection.execute("alter system set commit_siblings = 0")
        connection.execute("select pg_reload_conf()")
    time.sleep(rng.uniform(2, 5))
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with suppress(psycopg.Error), system.connect() as connection:
            connection.execute("alter system reset commit_delay")
            connection.execute("alter system reset commit_siblings")
            connection.execute("select pg_reload_conf()")
            break
        time.sleep(0.2)
    time.sleep(1)


def blocked_loop(system: System, rng: random.Random) -> None:
    seconds = rng.uniform(0.5, 1.5 * LEASE_SECONDS)
    with suppress(psycopg.Error), system.connect() as connection:
        connection.execute(
            "select mainspring.enqueue('blocking', %s)", (Jsonb({"seconds": seconds}),)
        )
    time.sleep(seconds + LEASE_SECONDS)


def poison_job(system: System, rng: random.Random) -> None:
    with suppress(psycopg.Error), system.connect() as connection:
        connection.execute("select mainspring.enqueue('poison')")
    time.sleep(2 * LEASE_SECONDS)


def held_snapshot(system: System, rng: random.Random) -> None:
    """A transaction that stays open, as a backup or a forgotten psql would."""
    with suppress(psycopg.Error), psycopg.connect(system.url, connect_timeout=3) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from mainspring.jobs")
        time.sleep(rng.uniform(2, 6))


def two_at_once(system: System, rng: random.Random) -> None:
    rng.choice(system.workers).signal(SIGKILL)
    rng.choice(system.schedulers).signal(SIGKILL)
    end_connections(system, rng)
    time.sleep(LEASE_SECONDS)


FAULTS: dict[str, tuple[int, Fault]] = {
    "worker killed": (4, kill_worker),
    "all workers killed": (1, kill_every_worker),
    "worker stopped": (2, stop_worker),
    "worker paused": (4, pause_worker),
    "server killed": (2, kill_server),
    "scheduler killed": (2, kill_scheduler),
    "scheduler paused": (2, pause_scheduler),
    "connections ended": (3, end_connections),
    "database restarted": (2, restart_database),
    "network silent": (3, silent_network),
    "address moved": (2, address_moved),
    "no connections left": (1, no_connections_left),
    "slow disk": (1, slow_disk),
    "event loop blocked": (2, blocked_loop),
    "poison job": (1, poison_job),
    "snapshot held": (1, held_snapshot),
    "several at once": (1, two_at_once),
}
