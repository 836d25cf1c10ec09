"""Starting a server again that was killed, for as long as somebody uses it."""

import threading
import time
from collections.abc import Callable

from mainspring import telemetry
from mainspring.db.embedded import postmasters
from mainspring.db.embedded.folders import Home
from mainspring.db.embedded.postmasters import Postmaster
from mainspring.domain.errors.database import EmbeddedServerError

LOOK_EVERY = 0.5
_LONGEST_PAUSE = 10.0
_STEADY_AFTER = 30.0


class Watcher:
    """Looks after the server in a thread of its own, and calls `revive` when it is gone.

    Every process that uses the server has one, since any of them may be the last one left.
    `revive` lets one of them start it and gives the others the server that runs then, or None
    if this process no longer uses it. The pause doubles with every try and is short again once
    a server has run for a while, so what dies at once is not started for ever without a rest.
    """

    def __init__(
        self, home: Home, postmaster: Postmaster, revive: Callable[[], Postmaster | None]
    ) -> None:
        self._home, self._revive = home, revive
        self._pid = postmaster.pid
        self._pause = LOOK_EVERY
        self._tried_at = 0.0
        self._problem: str | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="mainspring-embedded-server", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._pause):
            if not self._is_there():
                self._try()
            elif self._problem is not None:
                self._settle(self._pid)
            elif time.monotonic() - self._tried_at > _STEADY_AFTER:
                self._pause = LOOK_EVERY

    def _is_there(self) -> bool:
        try:
            found = postmasters.alive(self._home)
        except OSError:
            return False
        return found is not None and found.pid == self._pid

    def _try(self) -> None:
        if self._stopped.is_set():  # We stopped it ourselves.
            return
        if self._problem is None:
            self._report("embedded_server_lost")
            self._problem = ""
        self._tried_at = time.monotonic()
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        try:
            found = self._revive()
        except EmbeddedServerError as error:
            self._fail(str(error))
        else:
            if found is not None:
                self._settle(found.pid)

    def _settle(self, pid: int) -> None:
        self._pid, self._problem = pid, None
        self._report("embedded_server_back")

    def _report(self, event: str) -> None:
        telemetry.event(event, data_dir=str(self._home.folder), pid=self._pid)

    def _fail(self, problem: str) -> None:
        """Said once, however often it is tried; what follows the first line has a date in it."""
        if problem.partition("\n")[0] != self._problem:
            telemetry.event("embedded_server_failed", error=problem)
        self._problem = problem.partition("\n")[0]
