"""Statements on definitions."""

from collections.abc import Sequence

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.definitions import Definition

_STATEMENTS = load("definitions")


def sync(definitions: Sequence[Definition]) -> Call:
    """Store what a program declares; what did not change is not written."""
    return Call(
        _STATEMENTS["sync"].sql,
        {
            "keys": [definition.key for definition in definitions],
            "descriptions": [definition.description for definition in definitions],
            "queues": [definition.queue for definition in definitions],
            "priorities": [definition.priority for definition in definitions],
            "max_attempts": [definition.max_attempts for definition in definitions],
            "timeouts": [definition.timeout for definition in definitions],
            "bases": [definition.backoff.base for definition in definitions],
            "factors": [definition.backoff.factor for definition in definitions],
            "caps": [definition.backoff.cap for definition in definitions],
            "jitters": [definition.backoff.jitter for definition in definitions],
        },
    )


def keys() -> Call:
    """Each row is (key,) of an active definition."""
    return Call(_STATEMENTS["keys"].sql, {})
