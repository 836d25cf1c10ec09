"""Use cases of the doctor: examine the database, and fix what needs no judgement.

Each check reads in a transaction of its own, with a timeout of its own; one that fails is a finding
itself and hides none of the others. What a login may not see is a note.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Final, Protocol

import psycopg
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.sessions import run_call
from mainspring.domain.checks.model import Finding, Fix, Report, Severity, worst_first
from mainspring.domain.errors import InvalidOption
from mainspring.domain.suggestions import did_you_mean
from mainspring.services.doctor_checks import CHECKS, Look
from mainspring.services.doctor_fixes import FIXES, Step
from mainspring.settings import Settings
from mainspring.store import doctor as store
from mainspring.store import tokens

SECONDS: Final = 2.0
_FIX_SECONDS = 60.0
_POOLER, _PROBES = "D23", 3


class Source(Protocol):
    """Lends connections that run as the owner."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]: ...


def ensure_checks(asked: Sequence[str]) -> tuple[str, ...]:
    """The ids of the checks that were asked for, all of them by default."""
    for each in asked:
        if each not in CHECKS:
            hint = did_you_mean(each, CHECKS)
            raise InvalidOption(
                "only", f"must be the id of a check, such as D13, not {each!r}{hint}"
            )
    return tuple(sorted(set(asked))) or tuple(CHECKS)


async def examine(
    source: Source,
    settings: Settings,
    *,
    only: Sequence[str] = (),
    now: datetime | None = None,
    seconds: float = SECONDS,
) -> Report:
    """Look at everything, or at what was asked for. `now` stands for the present instant."""
    chosen = ensure_checks(only)
    async with source.connection() as connection:
        return Report(chosen, await _examine(Look(connection, settings, now), chosen, seconds))


async def fix(
    source: Source, settings: Settings, *, only: Sequence[str] = (), enter: Call | None = None
) -> Report:
    """Fix what needs no judgement, of what was asked for, and examine that afterwards. `enter` lets
    in whom the audit names."""
    chosen = ensure_checks(only)
    fixes: list[Fix] = []
    async with source.connection() as connection:
        look = Look(connection, settings, enter=enter)
        for each in chosen:
            if each in FIXES:
                fixes += await _fix(look, each)
        return Report(chosen, await _examine(look, chosen, SECONDS), fixes)


async def _examine(look: Look, chosen: Iterable[str], seconds: float) -> list[Finding]:
    found: list[Finding] = []
    for each in chosen:
        found += await _check(look, each, seconds)
    return worst_first(found)


async def _check(look: Look, check: str, seconds: float) -> list[Finding]:
    try:
        for _ in range(_PROBES if check == _POOLER else 0):
            await _begin(look, seconds)
        async with look.connection.transaction():
            await _begin(look, seconds)
            return await CHECKS[check](look)
    except psycopg.Error as error:
        if look.connection.closed:
            raise
        return [_unseen(check, error, seconds)]


async def _begin(look: Look, seconds: float) -> None:
    look.backends.add(await store.begin_check(look.connection, statement_ms=int(seconds * 1000)))


def _unseen(check: str, error: psycopg.Error, seconds: float) -> Finding:
    """What became of a check that failed."""
    match error:
        case psycopg.errors.InsufficientPrivilege():
            fact = f"this login may not look: {error.diag.message_primary}"
            advice = "connect as the owner of the database, who may grant pg_read_all_stats"
            return Finding(check, Severity.NOTE, fact, "the check was left out", advice)
        case psycopg.errors.QueryCanceled():
            fact = f"the check did not finish within {seconds:g} seconds"
        case _:
            fact = f"the check failed: {error.diag.message_primary or error}"
    advice = f"mainspring doctor --only {check}  -- once more, when the server is less busy"
    return Finding(check, Severity.WARNING, fact, "nobody knows what it would have found", advice)


async def _fix(look: Look, check: str) -> list[Fix]:
    """Each step is committed by itself, so that what could be done stays."""
    try:
        async with look.connection.transaction():
            await _begin(look, SECONDS)
            steps = await FIXES[check](look)
    except psycopg.Error as error:
        return [_failed(look, check, error, action="examined")]
    done = [await _take(look, check, step) for step in steps]
    return [each for each in done if each is not None]


async def _take(look: Look, check: str, step: Step) -> Fix | None:
    """None if there was nothing to do."""
    total = 0
    try:
        while count := await _run(look, check, step):
            total += count
            if not step.is_repeated:
                break
    except psycopg.Error as error:
        return _failed(look, check, error, action=step.said(total))
    return Fix(check, step.said(total)) if total else None


async def _run(look: Look, check: str, step: Step) -> int:
    milliseconds = int(_FIX_SECONDS * 1000)
    async with look.connection.transaction():
        await store.begin_check(look.connection, statement_ms=milliseconds, is_read_only=False)
        count = await step.run(look.connection)
        if count:
            if look.enter is not None:
                await run_call(look.connection, look.enter)
                await tokens.act_as_owner(look.connection)
            await store.note_fix(look.connection, check, step.said(count))
        return count


def _failed(look: Look, check: str, error: psycopg.Error, *, action: str) -> Fix:
    if look.connection.closed:
        raise error
    reason = error.diag.message_primary or str(error)
    if isinstance(error, psycopg.errors.LockNotAvailable):
        reason = "someone else holds the lock; try again"
    return Fix(check, f"not {action}: {reason}", is_done=False)
