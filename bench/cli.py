"""python -m bench.cli: the CPU time of short commands, and of a worker from its start to that of
its first job, as a ratio to `python -c pass`.

Needs no rivals and no environment of its own; it measures the Python that runs it.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import psycopg

from bench import servers

_PROGRAM: Final = (sys.executable, "-m", "mainspring")
_NOTHING: Final = (sys.executable, "-c", "pass")
_FIRST_JOB: Final = "worker, first job"
_TARGETS: Final = {
    "version": 14,
    "--help": 14,
    "jobs list, server": 25,
    "jobs list, direct": 35,
    _FIRST_JOB: 28,
}
_ADDRESS: Final = re.compile(r"http://[0-9.]+:[0-9]+")
_DEFINE: Final = "insert into mainspring.definitions (key, kind) values ('nothing', 'python')"
_ENQUEUE: Final = """
select count(*) from mainspring.enqueue_many('nothing', array(
    select '{}'::jsonb from generate_series(1, 20)))
"""
# As the app of bench.first_job declares it; what the worker before left behind is removed, since a
# job that was interrupted is run in another way.
_ENQUEUE_FIRST: Final = """
delete from mainspring.jobs where queue = 'bench';
delete from mainspring.workers;
insert into mainspring.definitions (key, kind, queue) values ('leave', 'python', 'bench')
    on conflict do nothing;
select mainspring.enqueue('leave');
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cli", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured")
    parser.add_argument("--database-url", help="a server to use instead of the embedded one")
    parser.add_argument("--data-dir", type=Path, help="where the embedded server lives")
    options = parser.parse_args()
    print(f"{os.getloadavg()[0]:.1f} processes busy before the start")
    with (
        servers.opened(options.database_url, options.data_dir) as server,
        server.database("cli", _fill) as dsn,
        _serving(dsn) as (address, token),
    ):
        cases = {
            "version": ["version"],
            "--help": ["--help"],
            "jobs list, server": ["jobs", "list", "--server", address],
            "jobs list, direct": ["jobs", "list", "--database-url", dsn],
            _FIRST_JOB: ["worker", "--app", "bench.first_job:app", "--database-url", dsn],
        }
        times = _measure(cases, token, options.rounds, before={_FIRST_JOB: _ENQUEUE_FIRST}, dsn=dsn)
    sys.exit(_report(times))


def _measure(
    cases: dict[str, list[str]],
    token: str,
    rounds: int,
    *,
    before: dict[str, str],
    dsn: str,
) -> dict[str, list[tuple[float, float]]]:
    """The CPU time of every case with that of `python -c pass` right before it; `before` holds what
    a case needs in the database each time."""
    environment = {**_environment(), "MAINSPRING_TOKEN": token}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    # The first round reads files that the others have in memory.
    for number in range(rounds + 1):
        for name, words in cases.items():
            if name in before:
                with psycopg.connect(dsn, autocommit=True) as connection:
                    connection.execute(before[name])
            pair = _cpu(_NOTHING, environment), _cpu((*_PROGRAM, *words), environment)
            if number:
                times[name].append(pair)
    return times


def _report(times: dict[str, list[tuple[float, float]]]) -> int:
    """Print medians; how many targets were missed."""
    missed = 0
    print(f"{'':20} {'ms':>6} {'ratio':>7} {'at most':>8}")
    for name, pairs in times.items():
        ratio = median(command / nothing for nothing, command in pairs)
        missed += ratio > _TARGETS[name]
        milliseconds = 1000 * median(command for _, command in pairs)
        print(f"{name:20} {milliseconds:6.0f} {ratio:7.1f} {_TARGETS[name]:8}")
    nothing = median(nothing for pairs in times.values() for nothing, _ in pairs)
    print(f"{'python -c pass':20} {1000 * nothing:6.1f}")
    return missed


def _cpu(command: Sequence[str], environment: dict[str, str]) -> float:
    """User and system time of a process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _fill(dsn: str) -> None:
    _run("migrate", "--database-url", dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_DEFINE)
        connection.execute(_ENQUEUE)


@contextmanager
def _serving(dsn: str) -> Iterator[tuple[str, str]]:
    """The address of a server, and the token of an operator."""
    token = _run("tokens", "create", "bench", "--role", "operator", "--database-url", dsn)
    command = [*_PROGRAM, "server", "--port", "0", "--database-url", dsn]
    with subprocess.Popen(
        command, env=_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _address(process), token.split()[0]
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        if found := _ADDRESS.search(line):
            return found[0]
    raise RuntimeError("the server did not start")


def _run(*words: str) -> str:
    return subprocess.run(
        [*_PROGRAM, *words], env=_environment(), stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def _environment() -> dict[str, str]:
    """Nobody's own settings and profiles; and modules are compiled once, as when installed."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if "MAINSPRING" not in name.upper() and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, "XDG_CONFIG_HOME": os.devnull, "MAINSPRING_CONFIG": os.devnull}


if __name__ == "__main__":
    main()
