"""What attempts print."""

from collections.abc import Sequence
from dataclasses import dataclass

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.store.attempts import Report

_STATEMENTS = load("outputs")


@dataclass(frozen=True, slots=True)
class Output:
    """The tails of what an attempt printed, and how its process ended if it has one."""

    report: Report
    stdout: str | None = None
    stderr: str | None = None
    pid: int | None = None
    exit_code: int | None = None


async def store(session: Session, outputs: Sequence[Output]) -> None:
    """Keep what has been printed so far; that of an older lease is left out."""
    params = {
        "job_ids": IntegerArray([output.report.job_id for output in outputs]),
        "fences": IntegerArray([output.report.fence for output in outputs]),
        "pids": [output.pid for output in outputs],
        "exit_codes": [output.exit_code for output in outputs],
        "stdouts": [output.stdout for output in outputs],
        "stderrs": [output.stderr for output in outputs],
    }
    await session.execute(_STATEMENTS["store_outputs"].sql, params)
