"""Which errors of the database may go away by themselves.

An error of the server, its connection or a conflict with others is worth retrying. Any other comes
from the statement or from one of its rows: it comes back as often as the statement is sent.
"""

# Connection, rollback (deadlock, serialization), resources, shutdown, system.
_CLASSES = ("08", "40", "53", "57P", "58")
# A lock that was not available, and a server that is a standby until it is promoted. A statement
# that took too long (57014) would do so again: fewer rows may not.
_LOCKED = "55P03"
_CONDITIONS = frozenset({_LOCKED, "25006"})


def is_locked(sqlstate: str | None) -> bool:
    """Whether someone else holds a row or a table. It passes, but nobody knows when, and what the
    statement does besides need not wait for it."""
    return sqlstate == _LOCKED


def is_of_a_row(sqlstate: str | None) -> bool:
    """Whether a statement over many rows may pass without one of them."""
    return is_locked(sqlstate) or not is_worth_retrying(sqlstate)


def is_worth_retrying(sqlstate: str | None) -> bool:
    """None is an error that the client raised, as it does for a connection that is gone."""
    return sqlstate is None or sqlstate.startswith(_CLASSES) or sqlstate in _CONDITIONS
