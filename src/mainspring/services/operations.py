"""Use cases of bulk operations: count what they would be about, and start them."""

from dataclasses import dataclass, replace

from mainspring.db.sessions import Session
from mainspring.domain.operations import Operation
from mainspring.domain.types import JobId
from mainspring.store import operations as store
from mainspring.store.operations import Place

# What a count looks at; some hundred milliseconds.
_MOST_SEEN = 100_000
_SEEN_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs pass; at least so many if there were more than could be looked at."""

    count: int
    is_exact: bool


async def count(session: Session, operation: Operation) -> Count:
    """How many jobs the operation would be about now."""
    passing, left = 0, _MOST_SEEN
    for stage in operation.stages:
        after: int | None = 0
        while after is not None:
            if left <= 0:
                return Count(passing, is_exact=False)
            place = Place(stage, after, most_seen=min(left, _SEEN_AT_ONCE))
            found = await store.count_jobs(session, operation, place)
            passing, left, after = passing + found.jobs, left - found.seen, found.edge
    return Count(passing, is_exact=True)


async def start(session: Session, operation: Operation) -> tuple[JobId, Count]:
    """The job that carries it out, in the name of whoever is let into the database."""
    counted = await count(session, operation)
    total = counted.count if counted.is_exact else None
    return await store.start_bulk(session, replace(operation, total=total)), counted
