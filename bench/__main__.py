"""python -m bench: measures, prints one table and writes bench/results.json."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from rich.console import Console

from bench import measurements, reports, runs, servers
from bench.benches import Bench
from bench.cases import AGAIN, CASES, QUICK
from bench.catalogue import OURS, RAW, SYSTEMS
from bench.runs import Plan

_RESULTS: Final = Path(__file__).resolve().parent / "results.json"
_QUICK_SYSTEMS: Final = (OURS, "pgqueuer", RAW)
_QUICK_SCALE: Final = 0.4
_QUICK_SAMPLES: Final = 80


def main() -> None:
    options = _parser().parse_args()
    console = Console(width=max(Console().width, 120))
    started_at = time.perf_counter()
    with servers.opened(options.database_url, options.data_dir) as server:
        busy = f"{os.getloadavg()[0]:.1f} processes busy before the start"
        console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {busy}")
        console.print(f"PostgreSQL: {server.describe()}")
        samples = _QUICK_SAMPLES if options.quick else options.samples
        bench = Bench(server, scale=_scale(options), samples=samples, seconds=options.seconds)
        outcome = runs.run(bench, _plan(options), console.print)
    medians = measurements.medians(outcome.measurements)
    measurements.write(options.output, medians)
    reports.show(console, medians, [*outcome.notes, *measurements.unsteady(outcome.measurements)])
    minutes = (time.perf_counter() - started_at) / 60
    console.print(f"{minutes:.1f} minutes; figures are in {options.output}")
    sys.exit(0 if medians else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four cases, three systems, smaller")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--systems", type=_names(SYSTEMS), help="comma-separated; default all")
    parser.add_argument("--cases", type=_names(CASES), help="comma-separated; default all")
    parser.add_argument("--jobs", type=float, help="scale of all numbers of jobs; default 1")
    parser.add_argument(
        "--samples",
        type=int,
        default=150,
        help="jobs for latency; a fifth as many slots for lateness",
    )
    parser.add_argument("--seconds", type=float, default=10, help="how long sustained is measured")
    parser.add_argument("--database-url", help="a server to use instead of the embedded one")
    parser.add_argument("--data-dir", type=Path, help="where the embedded server lives")
    parser.add_argument("--output", type=Path, default=_RESULTS)
    return parser


def _names(known: Collection[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; known are {', '.join(known)}"
            )
        return names

    return parse


def _plan(options: argparse.Namespace) -> Plan:
    systems = options.systems or (_QUICK_SYSTEMS if options.quick else list(SYSTEMS))
    cases = options.cases or (QUICK if options.quick else [*CASES, *AGAIN])
    return Plan([SYSTEMS[name] for name in systems], cases, options.rounds)


def _scale(options: argparse.Namespace) -> float:
    chosen: float | None = options.jobs
    return chosen or (_QUICK_SCALE if options.quick else 1.0)


if __name__ == "__main__":
    main()
