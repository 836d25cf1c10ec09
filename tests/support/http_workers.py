"""A server process, and workers that reach it over HTTP as one in another language would.

    python -m tests.support.http_workers URL TOKEN QUEUE

runs such a worker in a process of its own. It claims up to ten jobs at a time and completes them;
the definition `deadly` kills it before it completes any.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess, says
from tests.support.warm import ROOT

DEADLY = "deadly"
HARMLESS = "harmless"
_BATCH = 10


@dataclass
class HttpWorker:
    """A worker registered with a server; it holds the lease for 30 seconds."""

    client: httpx.Client
    path: str

    @classmethod
    @contextmanager
    def registered(cls, url: str, token: str, queue: str) -> "Iterator[HttpWorker]":
        with httpx.Client(
            base_url=f"{url}/api/v1/work", headers={"Authorization": f"Bearer {token}"}, timeout=60
        ) as client:
            answer = client.post("/workers", json={"name": "http", "queues": [queue]})
            yield cls(client, f"/workers/{answer.raise_for_status().json()['worker_id']}")

    def claim(self, limit: int, *, wait: float = 0) -> list[dict[str, Any]]:
        asked = {"definitions": [DEADLY, HARMLESS], "limit": limit, "wait": wait}
        answer = self.client.post(f"{self.path}/claim", json=asked)
        jobs: list[dict[str, Any]] = answer.raise_for_status().json()["jobs"]
        return jobs

    def complete(self, job: dict[str, Any]) -> None:
        path = f"{self.path}/jobs/{job['job_id']}/complete"
        self.client.post(path, json={"fence": job["fence"]}).raise_for_status()

    def run(self) -> None:
        """Claim and complete until killed."""
        while True:
            jobs = self.claim(_BATCH, wait=1)
            if any(job["definition"] == DEADLY for job in jobs):
                os.kill(os.getpid(), signal.SIGKILL)
            for job in jobs:
                self.complete(job)


@contextmanager
def server_process(database_url: str, folder: Path) -> Iterator[str]:
    """`mainspring server` on a free port; its address."""
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    arguments = ("server", "--port", "0")
    server = WorkerProcess(arguments, environment, folder / "server.log", ROOT)
    try:
        says(server, "  server  ")
        found = re.search(r"http://[0-9.]+:[0-9]+", server.log)
        assert found is not None, server.log
        yield found[0]
    finally:
        server.end()


if __name__ == "__main__":
    with HttpWorker.registered(*sys.argv[1:]) as registered:
        registered.run()
