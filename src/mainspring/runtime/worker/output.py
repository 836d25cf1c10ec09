"""The output of a running attempt, on its way to where people see it."""

from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.jobs.tails import Tail
from mainspring.domain.secrets.redaction import MARGIN, Redactor
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.store import outputs
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output


class AttemptOutput:
    """The tails of an attempt; stored about twice a second while they grow, and at its end.

    What is stored is redacted as a whole each time: a secret may come in pieces.
    """

    __slots__ = ("_is_new", "_is_over", "_redactor", "exit_code", "pid", "stderr", "stdout")

    def __init__(self, redactor: Redactor) -> None:
        self.stdout, self.stderr = Tail(margin=MARGIN), Tail(margin=MARGIN)
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._redactor = redactor
        self._is_new = self._is_over = False

    def add_stdout(self, text: str) -> None:
        self.stdout.add(text)
        self._is_new = True

    def add_stderr(self, text: str) -> None:
        self.stderr.add(text)
        self._is_new = True

    def started(self, pid: int) -> None:
        self.pid, self._is_new = pid, True

    def exited(self, exit_code: int) -> None:
        self.exit_code, self._is_new = exit_code, True

    def close(self) -> None:
        """Nothing more will come; what was kept back is no secret any more."""
        self._is_over = True
        self._is_new = self._is_new or not (self.stdout.is_empty and self.stderr.is_empty)

    def take(self, report: Report) -> Output | None:
        """All there is, if something was added since the last time."""
        if not self._is_new:
            return None
        self._is_new = False
        return Output(
            report,
            stdout=self._storable(self.stdout),
            stderr=self._storable(self.stderr),
            pid=self.pid,
            exit_code=self.exit_code,
        )

    def _storable(self, tail: Tail) -> str | None:
        text = tail.shown(self._show)
        return None if text is None else clean(text, limit=None)

    def _show(self, text: str, start: int) -> str:
        return self._redactor.tail(text, start, is_whole=self._is_over)


async def store_output(job: ClaimedJob, source: AsyncSource) -> None:
    """Store what has come since the last time."""
    if (output := job.output.take(job.report)) is not None:
        async with source.connection() as connection:
            await outputs.store(connection, [output])
