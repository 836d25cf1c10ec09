"""python -m chaos: breaks a running system at random and checks the promises.

A run has a seed: the same seed chooses the same operations and faults in the same order. What
happens between them is up to the machine.
"""

import argparse
import random
import shutil
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from chaos import observer as observers
from chaos.checks import History, Violation, Window, violations, waits
from chaos.faults import FAULTS
from chaos.operations import Callers, Fate
from chaos.systems import System, running

# A job that could run starts within this after the last fault that touched it.
BOUND_SECONDS = 15.0
# After the last fault everything ends within this.
QUIET_SECONDS = 120.0


@dataclass
class Result:
    """What one seed gave."""

    seed: int
    windows: list[Window] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)
    quiet_after: float = 0.0
    violations: list[Violation] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them")
    parser.add_argument("--seconds", type=float, default=180, help="how long each breaks things")
    parser.add_argument("--faults", default="", help="only these, separated by commas")
    parser.add_argument("--keep", type=Path, help="where to keep the logs of a run that fails")
    asked = parser.parse_args()
    faults = [name.strip() for name in asked.faults.split(",") if name.strip()] or list(FAULTS)
    if unknown := set(faults) - FAULTS.keys():
        parser.error(f"unknown faults: {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}")
    results = []
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        result = run(seed, asked.seconds, faults, asked.keep)
        results.append(result)
        _print_result(result)
    _print_table(results)
    return 1 if any(result.violations for result in results) else 0


def run(seed: int, seconds: float, faults: list[str], keep: Path | None) -> Result:
    """One system, broken for so many seconds, then left alone until it is quiet."""
    rng = random.Random(seed)
    result = Result(seed)
    with running() as system:
        observer = observers.Observer(system)
        callers = Callers(system, seed)
        observer.run()
        callers.start()
        _break(system, observer, rng, seconds, faults, result)
        callers.stop_operations()
        _wait_for_quiet(system, result)
        observer.stop()
        history = observers.read_history(system, observer, callers.ledger)
        result.fates = Counter(callers.ledger.fates.values())
        result.operations = Counter(callers.ledger.kinds.values())
        result.violations += violations(history)
        result.violations += [
            Violation("operations", text) for text in sorted(set(callers.ledger.refused))
        ]
        _measure_waits(history, result)
        if result.violations and keep is not None:
            shutil.copytree(
                system.folder,
                keep / f"seed-{seed}",
                ignore=shutil.ignore_patterns("database"),
                dirs_exist_ok=True,
            )
    return result


def _break(
    system: System,
    observer: observers.Observer,
    rng: random.Random,
    seconds: float,
    faults: list[str],
    result: Result,
) -> None:
    until = time.monotonic() + seconds
    weights = [FAULTS[name][0] for name in faults]
    time.sleep(3)  # Something runs before anything breaks.
    while time.monotonic() < until:
        (name,) = rng.choices(faults, weights)
        start = _clock(observer)
        sys.stderr.write(f"{start:7.1f} s  {name}\n")
        FAULTS[name][1](system, rng)
        result.windows.append(Window(name, start, _clock(observer)))
        time.sleep(rng.uniform(0.2, 3))


def _clock(observer: observers.Observer) -> float:
    """The database's clock, once it answers."""
    while (now := observer.now()) is None:
        time.sleep(0.1)
    return now


def _wait_for_quiet(system: System, result: Result) -> None:
    """Until no job is live but the ticks that go on."""
    began = time.monotonic()
    while time.monotonic() - began < QUIET_SECONDS:
        live = observers.live_jobs(system)
        if live is not None and live <= 1:
            break
        time.sleep(0.2)
    for scheduler in system.schedulers:
        scheduler.end()
    while time.monotonic() - began < QUIET_SECONDS and observers.live_jobs(system) != 0:
        time.sleep(0.2)
    result.quiet_after = time.monotonic() - began


def _measure_waits(history: History, result: Result) -> None:
    for wait in waits(history, result.windows):
        name = wait.fault or "none"
        if wait.seconds > result.worst.get(name, -1.0):
            result.worst[name] = wait.seconds
        if wait.seconds > BOUND_SECONDS:
            result.violations.append(
                Violation(
                    "liveness",
                    f"job {wait.job_id} ({wait.definition}) waited {wait.seconds:.1f} s"
                    f" after: {name}",
                )
            )


def _print_result(result: Result) -> None:
    fates = ", ".join(f"{count:,} {fate}" for fate, count in sorted(result.fates.items()))
    print(
        f"seed {result.seed}: {sum(result.operations.values()):,} operations ({fates}),"
        f" {len(result.windows)} faults, quiet after {result.quiet_after:.1f} s,"
        f" {len(result.violations)} violations",
        flush=True,
    )
    for violation in result.violations[:40]:
        print(f"  promise {violation.promise}: {violation.text}", flush=True)


def _print_table(results: list[Result]) -> None:
    counts: Counter[str] = Counter()
    worst: dict[str, float] = defaultdict(float)
    for result in results:
        counts.update(window.fault for window in result.windows)
        for name, seconds in result.worst.items():
            worst[name] = max(worst[name], seconds)
    print("\n| fault | times | worst wait of a job afterwards |\n|---|---:|---:|")
    for name in (*FAULTS, "none"):
        if name == "none" or counts[name]:
            times = f"{counts[name]:,}" if counts[name] else "-"
            print(f"| {name} | {times} | {worst[name]:.1f} s |")
    operations = sum(sum(result.operations.values()) for result in results)
    committed = sum(result.fates[Fate.COMMITTED] for result in results)
    print(
        f"\n{len(results)} seeds, {operations:,} operations, {committed:,} of them committed,"
        f" {sum(counts.values()):,} faults,"
        f" {sum(len(result.violations) for result in results):,} violations."
    )


if __name__ == "__main__":
    sys.exit(main())
