"""What the parts of a worker announce; `worker.py` says who listens."""

from collections.abc import Collection, Sequence

from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import JobId
from mainspring.runtime.worker.claimed_job import ClaimedJob


class WorkerEvents:
    """Nobody listens to these; a subclass does, or a test."""

    def capacity_freed(self) -> None:
        """A runner could take another job."""

    def reports_sent(self, count: int) -> None:
        """So many reports are committed."""

    def jobs_ready(self, lane: Lane, job_ids: Collection[int]) -> None:
        """These jobs of the lane, which were claimed before, can be claimed again."""

    def notifications_missed(self) -> None:
        """Jobs may be due soon, or wait for a limit, of which nobody was notified."""

    def places_freed(self, keys: Collection[LimitKey]) -> None:
        """Places of limits have come free, one each time a key comes up."""

    def limits_due(self) -> None:
        """Jobs that wait for limits may be able to go."""

    def parents_ended(self, job_ids: Collection[JobId]) -> None:
        """These jobs have ended, and others wait for them."""

    def definitions_loaded(self, jobs: Sequence[ClaimedJob]) -> None:
        """These jobs can run, now that their definitions are known."""
