"""SQL conditions as they are saved: whether a scheduler can log in as their role and read them.

What a scheduler would only find out at the first slot is refused at once, as far as it cannot
change by itself: a table that is missing now may be there by then, a syntax error stays.
"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.errors.database import DatabaseError, RoleLoginFailed
from mainspring.domain.schedules.model import ScheduleSpec
from mainspring.store import conditions as store
from mainspring.store import sql_functions

if TYPE_CHECKING:
    from mainspring.db.database import Database
    from mainspring.services.schedules import Scope

# The roles of schedules that tenants made; a condition that is added runs as whoever adds it.
_API_ROLES = frozenset(("mainspring_app", "pg_database_owner"))
_LIMIT = timedelta(seconds=2)
_NETWORK_SECONDS = 3


async def ensure_condition(scope: "Scope", spec: ScheduleSpec) -> None:
    """Refuse a role that no scheduler could log in as, and what is no single query. A role that is
    missing, or that the caller may not have, the database refuses."""
    if scope.database is None or (spec.condition_sql or spec.gauge_sql) is None:
        return
    role = None if spec.condition_role in _API_ROLES else spec.condition_role
    if role is not None:
        if not await sql_functions.has_role(scope.session, role):
            return
        await _ensure_login(scope, scope.database, role)
        if not await store.may_run_as(scope.session, role):
            return
    if not scope.is_blocking:
        await _ensure_query(scope.database, spec, role)


async def _ensure_login(scope: "Scope", database: "Database", role: str) -> None:
    logins = database.role_logins()
    try:
        if scope.is_blocking:
            logins.ensure_conditions_run_blocking(role)
        else:
            await logins.ensure_conditions_run(role)
    except RoleLoginFailed as error:
        raise InvalidSchedule("condition_role", str(error)) from None


async def _ensure_query(database: "Database", spec: ScheduleSpec, role: str | None) -> None:
    """On a connection like that of the scheduler; if there is none now, the scheduler says it."""
    field = "gauge_sql" if spec.condition_sql is None else "condition_sql"
    # A login made for conditions is their role.
    wanted = None if database.settings.condition_database_url else role
    try:
        async with (
            asyncio.timeout(_LIMIT.total_seconds() + _NETWORK_SECONDS),
            database.role_logins().for_conditions(role) as connection,
        ):
            problem = await store.find_problem(
                connection, getattr(spec, field), role=wanted, limit=_LIMIT
            )
    except (psycopg.Error, DatabaseError, TimeoutError):
        return
    if problem is not None:
        raise InvalidSchedule(field, problem)
