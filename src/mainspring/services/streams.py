"""Use cases of watching: which of many jobs have changed, asked in one go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainspring.db.sessions import Session
from mainspring.domain.jobs.model import WatchedJob
from mainspring.domain.types import JobId
from mainspring.store import streams as store
from mainspring.store.streams import Output

_ENDED = "ended"
_AT_ONCE = 1000
# A larger result is left to whoever asks for the job.
_MOST_RESULT_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Watched:
    """A job as it is now, with what it has printed; None where it is gone."""

    version: str
    job: WatchedJob | None
    output: Output | None


async def changes(session: Session, known: Mapping[JobId, str | None]) -> dict[JobId, Watched]:
    """Those of the jobs that are at another version than the one known."""
    found: dict[JobId, Watched] = {}
    job_ids = list(known)
    for start in range(0, len(job_ids), _AT_ONCE):
        found |= await _changes(session, job_ids[start : start + _AT_ONCE], known)
    return found


async def _changes(
    session: Session, job_ids: Sequence[JobId], known: Mapping[JobId, str | None]
) -> dict[JobId, Watched]:
    versions = await store.versions(session, job_ids)
    changed = [each for each in job_ids if versions.get(each, _ENDED) != known[each]]
    if not changed:
        return {}
    loaded = await store.load_jobs(session, changed, most_bytes=_MOST_RESULT_BYTES)
    jobs = {job.id: job for job in loaded}
    outputs = await store.load_outputs(session, changed)
    return {
        job_id: Watched(versions.get(job_id, _ENDED), jobs.get(job_id), outputs.get(job_id))
        for job_id in changed
    }
