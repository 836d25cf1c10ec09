"""What an error code of PostgreSQL (SQLSTATE) says about trying again."""

# Connection lost, the server stopped or was told to, transactions in each other's way, and no
# memory, disk or connections left.
_PASSING = ("08", "57P", "40", "53")


def is_worth_retrying(sqlstate: str | None) -> bool:
    """Whether the same statement may succeed later; None, no answer at all, may."""
    return sqlstate is None or sqlstate.startswith(_PASSING)
