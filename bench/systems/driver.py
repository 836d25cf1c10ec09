"""What a system must offer to be measured, and the commands the harness runs it by.

Each command is a process of one system and of nothing else: `python -m bench.systems raw worker`.
Clients are blocking: an async-only system wraps its event loop, at about 20 µs a call.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from bench import stamps

QUEUE: Final = "bench"
_COMMANDS: Final = ("install", "worker", "single", "bulk", "produce", "latency")


class Client(Protocol):
    def enqueue(self, n: int) -> None:
        """Enqueue and commit one job with the payload {"n": n}."""

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        """Enqueue and commit one job a number, in the way the system means for many."""


class Driver(Protocol):
    def install(self, dsn: str) -> None:
        """Create the schema in an empty database."""

    def client(self, dsn: str) -> AbstractContextManager[Client]: ...

    def work(self, dsn: str, concurrency: int) -> None:
        """Work until killed."""


def run(driver: Driver) -> None:
    """Do what the command line says and print its result as JSON."""
    arguments = _parser().parse_args()
    match arguments.command:
        case "install":
            driver.install(arguments.dsn)
        case "worker":
            driver.work(arguments.dsn, arguments.concurrency)
        case _:
            with driver.client(arguments.dsn) as client:
                json.dump(_use(client, arguments), sys.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=_COMMANDS)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--concurrency", type=int, default=500)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--stamps", type=Path)
    return parser


def _use(client: Client, arguments: argparse.Namespace) -> object:
    match arguments.command:
        case "single":
            return _time_single(client, arguments.count)
        case "bulk":
            return _time_bulk(client, arguments.count)
        case "produce":
            return _produce(client, arguments.batch, arguments.seconds)
        case _:
            return stamps.sample(client.enqueue, arguments.stamps, arguments.count)


def _time_single(client: Client, count: int) -> float:
    """Seconds for so many enqueues, one after the other, after a few to warm up."""
    for n in range(50):
        client.enqueue(n)
    started_at = time.perf_counter()
    for n in range(count):
        client.enqueue(n)
    return time.perf_counter() - started_at


def _time_bulk(client: Client, count: int) -> float:
    started_at = time.perf_counter()
    client.enqueue_bulk(range(count))
    return time.perf_counter() - started_at


def _produce(client: Client, batch: int, seconds: float) -> int:
    """Enqueue batch after batch for so long; gives how many jobs."""
    until, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        client.enqueue_bulk(range(count, count + batch))
        count += batch
    return count
