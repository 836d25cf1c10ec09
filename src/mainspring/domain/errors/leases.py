"""Errors about leases; the tree is drawn in `errors`."""

from mainspring.domain.errors import ConflictError
from mainspring.domain.types import JobId


class WorkerGone(ConflictError):
    """The API worker has lost its lease, or belongs to someone else."""

    code = "worker_gone"

    def __init__(self, worker_id: int) -> None:
        super().__init__(
            f"worker {worker_id} has lost its lease, or is not yours; open a new worker "
            "(POST /work/workers)"
        )
        self.worker_id = worker_id


class LeaseLost(ConflictError):
    """The report came from an older lease; the job belongs to someone else now."""

    code = "lease_lost"

    def __init__(self, job_id: JobId, problem: str | None = None) -> None:
        super().__init__(problem or f"the lease of job {job_id} was lost; its reports are refused")
        self.job_id = job_id


class LateReport(LeaseLost):
    """The report came from an older lease; it was kept and changes nothing."""

    code = "late_report"

    def __init__(self, job_id: JobId) -> None:
        ConflictError.__init__(
            self,
            f"the lease of job {job_id} was lost before this report; it was kept as its late "
            "report and changes nothing",
        )
        self.job_id = job_id
