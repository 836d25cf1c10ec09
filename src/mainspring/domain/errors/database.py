"""What is wrong with the database, each with what to do about it; the tree is drawn in `errors`."""

from collections.abc import Iterator, Sequence

from mainspring.domain.errors import MainspringError


class DatabaseError(MainspringError):
    """The database cannot be used as it is; the message says what to do."""

    code = "database_error"


class DatabaseUnreachable(DatabaseError):
    """No connection could be made."""

    code = "database_unreachable"


class RoleLoginFailed(DatabaseError):
    """Nobody can log in as a role whose SQL is to be run."""

    code = "role_login_failed"

    def __init__(self, role: str, reason: str) -> None:
        super().__init__(
            f"cannot log in as {role}: {reason}; run `alter role {role} login` and add "
            f"{role}=URL to the setting role_urls"
        )
        self.role, self.reason = role, reason


class PoolExhausted(DatabaseError):
    """Every connection of a pool was in use for too long."""

    code = "pool_exhausted"

    def __init__(self, size: int, seconds: float) -> None:
        super().__init__(
            f"all {size} connections for ctx.transaction() were in use for {seconds:g} s; raise "
            "the worker's pool_size, lower its concurrency, or keep transactions shorter"
        )
        self.size, self.seconds = size, seconds


class ConnectionsBusy(DatabaseError):
    """All connections that a tenant's requests may use at a time were in use for too long."""

    code = "connections_busy"

    def __init__(self, who: str, seconds: float) -> None:
        super().__init__(
            f"requests of {who} have kept all database connections they may use busy for "
            f"{seconds:g} s; send fewer at a time, and try again"
        )
        self.who, self.seconds = who, seconds


class RightsMissing(DatabaseError):
    """The login lacks rights that an administrator has to give; `statements` give them."""

    code = "rights_missing"

    def __init__(self, login: str, statements: Sequence[str]) -> None:
        lines = "".join(f"\n{statement};" for statement in statements)
        super().__init__(
            f"{login} is not the owner of this database and lacks rights; ask an administrator to "
            f"run this in it, then try again:{lines}"
        )
        self.login, self.statements = login, tuple(statements)


class InsufficientRights(DatabaseError):
    """PostgreSQL refused the login something of Mainspring's schema."""

    code = "insufficient_rights"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the database refused this login: {reason}; connect as the owner of the schema "
            "mainspring, or as a member of it (`grant OWNER to LOGIN`)"
        )
        self.reason = reason


class DatabaseTooOld(DatabaseError):
    """The server is older than PostgreSQL 15."""

    code = "database_too_old"

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the server is PostgreSQL {version}; Mainspring needs PostgreSQL 15 or newer"
        )
        self.version = version


class SchemaMissing(DatabaseError):
    """The database has no Mainspring schema."""

    code = "schema_missing"

    def __init__(self) -> None:
        super().__init__(
            "this database has no Mainspring schema; run `mainspring migrate` against it"
        )


class SchemaOutdated(DatabaseError):
    """The schema is older than the program."""

    code = "schema_outdated"

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(
            f"the database is at migration {found}, this program needs {expected}; "
            "run `mainspring migrate`"
        )
        self.found, self.expected = found, expected


class SchemaTooNew(DatabaseError):
    """The schema was migrated by a newer program, and no longer works with this one."""

    code = "schema_too_new"

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(
            f"the database is at migration {found}, this program knows only up to {expected}; "
            "upgrade Mainspring"
        )
        self.found, self.expected = found, expected


class SchemaUnreleased(DatabaseError):
    """The schema is that of an unreleased version, or its migrations were edited since."""

    code = "schema_unreleased"

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the schema was created by an unreleased version of Mainspring (at migration {found}) "
            "and cannot be upgraded; back up what you need, drop it with `drop schema mainspring, "
            "mainspring_calls cascade` (embedded database: delete its data directory), then run "
            "`mainspring migrate`"
        )
        self.found = found


class FunctionsOutdated(DatabaseError):
    """The functions and views in the database are older than the program's, or differ from them."""

    code = "functions_outdated"

    def __init__(self, found: int, expected: int) -> None:
        state = (
            f"are at version {found}, this program needs {expected}"
            if found != expected
            else f"are not those of this program (both at version {found})"
        )
        super().__init__(
            f"the functions and views in the database {state}; run `mainspring migrate`"
        )
        self.found, self.expected = found, expected


class SchemaLocked(DatabaseError):
    """An upgrade could not lock what it changes; `blockers` says who was in the way."""

    code = "schema_locked"

    def __init__(self, what: str, tries: int, blockers: Sequence[str]) -> None:
        times = f"{tries} tries" if tries > 1 else "1 try"
        holders = f": held by {', '.join(blockers)}" if blockers else ""
        super().__init__(
            f"{what} could not acquire its locks in {times} of 2 s{holders}; wait for them to "
            "finish or end them, then run `mainspring migrate` again"
        )
        self.what, self.tries, self.blockers = what, tries, tuple(blockers)


class EmbeddedServerError(DatabaseError):
    """The embedded PostgreSQL could not be started."""

    code = "embedded_server"


class EmbeddedServerMissing(DatabaseError):
    """No database URL was given and the embedded server is not installed."""

    code = "embedded_missing"

    def __init__(self) -> None:
        super().__init__(
            "no database URL is set and the embedded server is not installed; set "
            "MAINSPRING_DATABASE_URL or run `pip install 'mainspring[embedded]'`"
        )


def all_errors(root: type[MainspringError] = MainspringError) -> Iterator[type[MainspringError]]:
    """Every error class, the root first."""
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)
