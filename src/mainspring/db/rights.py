"""What the login lacks that only an administrator can give, as statements to copy.

An owner of its database lacks nothing: it creates the schemas, and requests run as the role
pg_database_owner, which it may become. Anyone else needs schemas of its own and a role for
requests; see internal/access.sql.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from psycopg import AsyncConnection

from mainspring.domain.errors.database import RightsMissing

SCHEMAS = ("mainspring", "mainspring_calls")
# A superuser has every right, and each of these is true for it.
_LOGIN = """
select quote_ident(session_user),
       has_database_privilege(current_database(), 'create'),
       array(select nspname::text from pg_catalog.pg_namespace where nspname = any(%(schemas)s)),
       array(select distinct quote_ident(owner.rolname)
               from pg_catalog.pg_namespace
               join pg_catalog.pg_roles as owner on owner.oid = nspowner
              where nspname = any(%(schemas)s) and not pg_has_role(session_user, owner.oid, 'USAGE')
                -- Nobody should be made a superuser.
                and not owner.rolsuper)
"""
# The right to become a role is one of its own since PostgreSQL 16; so is that to grant a role,
# which before came with CREATEROLE.
_APP_ROLE = """
select to_regrole('mainspring_app') is not null,
       pg_has_role(session_user, 'pg_database_owner', %(kind)s),
       coalesce((select pg_has_role(session_user, app.oid, %(kind)s)
                        or pg_has_role(session_user, app.oid, 'MEMBER WITH ADMIN OPTION')
                        or %(is_old)s and login.rolcreaterole
                   from pg_catalog.pg_roles as app where app.rolname = 'mainspring_app'),
                login.rolcreaterole)
  from pg_catalog.pg_roles as login where login.rolname = session_user
"""
_SET_IS_A_RIGHT = 160000


@dataclass(frozen=True, slots=True)
class Rights:
    """What keeps a login from installing Mainspring and from serving requests."""

    login: str
    schemas: Sequence[str]
    requests: Sequence[str]

    @property
    def statements(self) -> list[str]:
        return [*self.schemas, *self.requests]

    def ensure(self) -> None:
        """Raise RightsMissing, with every statement that an administrator has to run."""
        if self.statements:
            raise RightsMissing(self.login, self.statements)


async def read(connection: AsyncConnection[Any]) -> Rights:
    """What the login of the connection lacks."""
    parameters = {"schemas": list(SCHEMAS)}
    row = await (await connection.execute(_LOGIN, parameters)).fetchone()
    login, may_create, present, foreign = cast(tuple[str, bool, list[str], list[str]], row)
    made = [
        f"create schema {name} authorization {login}"
        for name in SCHEMAS
        if name not in present and not may_create
    ]
    granted = [f"grant {owner} to {login}" for owner in foreign]
    # Whoever gets the owner's rights has the right to serve requests with them.
    requests = [] if granted else await _missing_for_requests(connection, login)
    return Rights(login, [*made, *granted], requests)


async def _missing_for_requests(connection: AsyncConnection[Any], login: str) -> list[str]:
    is_old = connection.info.server_version < _SET_IS_A_RIGHT
    parameters = {"is_old": is_old, "kind": "MEMBER" if is_old else "SET"}
    row = await (await connection.execute(_APP_ROLE, parameters)).fetchone()
    is_present, is_owner, may_become = cast(tuple[bool, bool, bool], row)
    if is_owner or may_become:
        return []
    made = [] if is_present else ["create role mainspring_app nologin"]
    return [*made, f"grant mainspring_app to {login}{'' if is_old else ' with set true'}"]
