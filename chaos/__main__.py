"""python -m chaos: breaks a running system at random and checks the promises.

A run has a seed: the same seed chooses the same operations and faults in the same order. What
happens between them is up to the machine.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from chaos import observer as observers
from chaos import reports, shares, spans
from chaos.checks import Violation, violations
from chaos.faults import FAULTS
from chaos.histories import History, Window
from chaos.operations import Callers
from chaos.records import read_history
from chaos.reports import Result
from chaos.systems import System, running
from chaos.waits import late, waits

# After the last fault everything ends within this.
QUIET_SECONDS = 120.0
_PROGRESS_SECONDS = 60.0


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
    # What was started is ended also if we are told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = []
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        results.append(run(seed, asked.seconds, faults, asked.keep))
        print(reports.summary(results[-1]), flush=True)
    print(reports.tables(results), flush=True)
    return 1 if any(result.violations for result in results) else 0


def run(seed: int, seconds: float, faults: list[str], keep: Path | None) -> Result:
    """One system, broken for so many seconds, then left alone until it is quiet."""
    result = Result(seed)
    with running() as system:
        observer = observers.Observer(system)
        callers = Callers(system, seed)
        observer.run()
        callers.start()
        _break(system, observer, random.Random(seed), seconds, faults, result)
        callers.stop_operations()
        _wait_for_quiet(system, result)
        callers.close()
        observer.stop()
        history = read_history(system, observer, callers.ledger)
        result.fates = Counter(callers.ledger.fates.values())
        result.operations = Counter(callers.ledger.kinds.values())
        result.looks = callers.ledger.looks
        result.violations += [
            Violation("operations", text) for text in sorted(set(callers.ledger.refused))
        ]
        _judge(history, result)
        if result.violations and keep is not None:
            _keep(system, history, result, keep / f"seed-{seed}")
    return result


def _judge(history: History, result: Result) -> None:
    found = waits(history)
    turns = list(shares.turns(history))
    result.violations += [*violations(history), *late(found), *shares.starved(history)]
    for wait in found:
        result.waits[wait.kind] += 1
        result.worst[wait.kind] = max(result.worst.get(wait.kind, 0.0), wait.seconds)
    result.most_before = max((turn.others for turn in turns), default=0)
    result.seconds = history.ended_at
    served = spans.within(history.availability.served("default"), 0.0, history.ended_at)
    result.counted_seconds = spans.length(served)


def _keep(system: System, history: History, result: Result, folder: Path) -> None:
    """The logs, and what is needed to see what happened when."""
    ignored = shutil.ignore_patterns("database")
    shutil.copytree(system.folder, folder, ignore=ignored, dirs_exist_ok=True)
    facts = {
        "violations": [asdict(each) for each in result.violations],
        "faults": [asdict(each) for each in result.windows],
        "history": asdict(history),
    }
    (folder / "history.json").write_text(json.dumps(facts, indent=1, default=list))


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
    progress_at = time.monotonic() + _PROGRESS_SECONDS
    time.sleep(3)  # Something runs before anything breaks.
    while time.monotonic() < until:
        (name,) = rng.choices(faults, weights)
        start = observer.now()
        FAULTS[name][1](system, rng)
        result.windows.append(Window(name, start, observer.now()))
        time.sleep(rng.uniform(0.2, 3))
        if time.monotonic() >= progress_at:
            progress_at += _PROGRESS_SECONDS
            sys.stderr.write(
                f"seed {result.seed}: {observer.now():.0f} s of {seconds:.0f} s,"
                f" {len(result.windows)} faults, the last one: {name}\n"
            )


def _wait_for_quiet(system: System, result: Result) -> None:
    """Until no job is live but the ticks that go on."""
    began = time.monotonic()
    while time.monotonic() - began < QUIET_SECONDS:
        live = observers.live_jobs(system)
        if live is not None and live <= 1:
            break
        time.sleep(0.5)
    for scheduler in system.schedulers:
        scheduler.end()
    while time.monotonic() - began < QUIET_SECONDS and observers.live_jobs(system) != 0:
        time.sleep(0.5)
    result.quiet_after = time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
