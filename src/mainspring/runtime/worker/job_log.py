"""Log lines about the jobs that a worker runs, as many as `log_jobs` asks for."""

from mainspring.domain.jobs.outcomes import End, Requeue
from mainspring.domain.types import AttemptStatus, JobState
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.reporter import Reporter


class JobLog:
    """Logs every start and end, attempts that fail, or nothing; deaths of processes always."""

    def __init__(self, log_jobs: str) -> None:
        self.logs_all = log_jobs == "all"
        self._logs_failures = log_jobs != "none"

    @property
    def reporter(self) -> type[Reporter]:
        return LoggedReporter if self.logs_all else Reporter

    def started(self, job: ClaimedJob) -> None:
        job.log_event("job_started")

    def ended(self, job: ClaimedJob, outcome: End) -> None:
        """Without success."""
        facts = {"state": outcome.state, "error": outcome.error}
        if outcome.lost:
            job.log_event("job_parked", **facts)
        elif outcome.status is AttemptStatus.LOST:
            job.log_event("job_lost", **facts)
        elif self._logs_failures:
            is_dead = outcome.state is JobState.DEAD_LETTER
            job.log_event("job_dead" if is_dead else "job_ended", **facts)

    def requeued(self, job: ClaimedJob, outcome: Requeue) -> None:
        facts = {"error": outcome.error, "retry_in_seconds": outcome.delay.total_seconds()}
        if outcome.failed and self._logs_failures:
            job.log_event("attempt_failed", **facts)
        elif outcome.lost:
            job.log_event("suspect_died", **facts)


class LoggedReporter(Reporter):
    """Also logs success; the hot path of the other has no question to ask."""

    def succeed(self, job: ClaimedJob, ran: float, result: bytes | None) -> None:
        super().succeed(job, ran, result)
        job.log_event("job_succeeded", seconds=round(ran, 6))

    def committed(self, job: ClaimedJob, *, is_parent: bool) -> None:
        super().committed(job, is_parent=is_parent)
        _, ran = job.timings()
        job.log_event("job_succeeded", seconds=ran / 1e6)
