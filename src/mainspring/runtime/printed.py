"""What a running attempt prints, on its way to where people see it."""

from mainspring.domain.outcomes import clean
from mainspring.domain.tails import Tail
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output


class Printed:
    """The tails of an attempt; stored about twice a second while they grow, and at its end."""

    __slots__ = ("_is_new", "exit_code", "pid", "stderr", "stdout")

    def __init__(self) -> None:
        self.stdout, self.stderr = Tail(), Tail()
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._is_new = False

    def print(self, text: str) -> None:
        self.stdout.add(text)
        self._is_new = True

    def complain(self, text: str) -> None:
        self.stderr.add(text)
        self._is_new = True

    def began(self, pid: int) -> None:
        self.pid, self._is_new = pid, True

    def ended(self, exit_code: int) -> None:
        self.exit_code, self._is_new = exit_code, True

    def take(self, report: Report) -> Output | None:
        """All there is, if something was added since the last time."""
        if not self._is_new:
            return None
        self._is_new = False
        return Output(
            report,
            stdout=_storable(self.stdout),
            stderr=_storable(self.stderr),
            pid=self.pid,
            exit_code=self.exit_code,
        )


def _storable(tail: Tail) -> str | None:
    text = tail.text
    return None if text is None else clean(text, limit=None)
