"""Which errors of the database may go away by themselves, and which are the fault of a row.

An error of the server, its connection or a conflict with others is worth retrying. An error of the
statement, such as a missing privilege or column, comes back with any rows: whoever sends it reports
it once and waits until an operator has mended it. Any other comes from one of the rows.
"""

# Connection, rollback (deadlock, serialization), resources, shutdown, system.
_CLASSES = ("08", "40", "53", "57P", "58")
# A lock that was not available, and a server that is a standby until it is promoted. A statement
# that took too long (57014) would do so again: fewer rows may not.
_LOCKED = "55P03"
_CONDITIONS = frozenset({_LOCKED, "25006"})
# What the server does not support, the state of the transaction, a prepared statement that is gone,
# authorization, a database or schema that is gone; syntax, privileges and undefined objects.
_STATEMENT_CLASSES = ("0A", "25", "26", "28", "3D", "3F", "42")


def is_locked(sqlstate: str | None) -> bool:
    """Whether someone else holds a row or a table. It passes, but nobody knows when, and what the
    statement does besides need not wait for it."""
    return sqlstate == _LOCKED


def is_of_a_row(sqlstate: str | None) -> bool:
    """Whether a statement over many rows may pass without one of them."""
    if is_locked(sqlstate):
        return True
    return not is_worth_retrying(sqlstate) and not is_of_the_statement(sqlstate)


def is_of_the_statement(sqlstate: str | None) -> bool:
    """Whether the statement would fail in the same way with any other rows."""
    return (sqlstate or "").startswith(_STATEMENT_CLASSES) and not is_worth_retrying(sqlstate)


def is_worth_retrying(sqlstate: str | None) -> bool:
    """None is an error that the client raised, as it does for a connection that is gone."""
    return sqlstate is None or sqlstate.startswith(_CLASSES) or sqlstate in _CONDITIONS
