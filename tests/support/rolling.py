"""Programs of two releases on one database, and callers that must not notice which one answers."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from signal import SIGTERM

import httpx
import psycopg

from tests.support.commands import clean_environment
from tests.support.waiting import wait_until

APP = """
from mainspring import Context, Mainspring

app = Mainspring()


@app.job
async def note(ctx: Context, number: int) -> None:
    async with ctx.transaction() as connection:
        await connection.execute("insert into public.effects values (%s)", (ctx.job_id,))
"""
SETTINGS = {
    "MAINSPRING_POLL_SECONDS": "0.2",
    "MAINSPRING_DRAIN_SECONDS": "20",
    "PYTHONUNBUFFERED": "1",
}
_PACE_SECONDS = 0.02


@dataclass(eq=False)
class Program:
    """A running role of one release, its output in a file."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def when_it_says(self, text: str) -> "Program":
        """Itself, once it has said it."""

        def is_said() -> bool:
            assert self.process.poll() is None, self.log
            return text in self.log

        wait_until(is_said, 120, f"the program says {text!r}")
        return self

    def stop(self) -> None:
        """SIGTERM, and a clean end."""
        self.process.send_signal(SIGTERM)
        assert self.process.wait(60) == 0, self.log
        assert "Traceback" not in self.log, self.log


@dataclass
class Release:
    """A source tree whose programs can be started on the database."""

    source: Path
    url: str
    folder: Path
    programs: list[Program] = field(default_factory=list)

    def run(self, *arguments: str) -> str:
        """A command to its end; what it printed."""
        done = subprocess.run(
            self._command(arguments), env=self._environment(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def start(self, *arguments: str) -> Program:
        """Start a role; it is not ready yet."""
        log = self.folder / f"{self.source.parent.name}-{len(self.programs)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self._command(arguments), env=self._environment(), stdout=stream, stderr=stream
            )
        program = Program(process, log)
        self.programs.append(program)
        return program

    def end(self) -> None:
        """Kill what still runs."""
        for program in self.programs:
            program.process.kill()
            program.process.wait(10)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "mainspring", *arguments]

    def _environment(self) -> dict[str, str]:
        path = f"{self.source}:{self.folder}"
        variables = {"PYTHONPATH": path, "MAINSPRING_DATABASE_URL": self.url}
        return clean_environment(**SETTINGS, **variables)


class Callers:
    """Enqueue without a pause, over REST and in SQL, create people and tokens, and note what was
    refused."""

    def __init__(self, url: str, token: str, address: str) -> None:
        self._url, self._address = url, address
        self._headers = {"Authorization": f"Bearer {token}"}
        self._switching = threading.Lock()
        self._stopping = threading.Event()
        self.job_ids: list[int] = []
        self.names: list[str] = []  # Of people and of the tokens of the same name.
        self.refused: list[str] = []

    @contextmanager
    def calling(self) -> Iterator[None]:
        callers = (self._call_rest, self._call_sql, self._create_people)
        threads = [threading.Thread(target=each) for each in callers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def switch_to(self, address: str) -> None:
        """Ask another server from now on; no request to the one before is under way any more."""
        with self._switching:
            self._address = address

    def _call_rest(self) -> None:
        with httpx.Client(headers=self._headers, timeout=30) as client:

            def enqueue(number: int) -> int:
                body = {"definition": "note", "payload": {"number": number}}
                with self._switching:
                    answer = client.post(f"{self._address}/api/v1/jobs", json=body)
                    assert answer.status_code == HTTPStatus.CREATED, answer.text
                    job_id = answer.json()["id"]
                    found = client.get(f"{self._address}/api/v1/jobs/{job_id}")
                assert found.status_code == HTTPStatus.OK, found.text
                return int(job_id)

            self._call(lambda number: self.job_ids.append(enqueue(number)))

    def _create_people(self) -> None:
        with httpx.Client(headers=self._headers, timeout=30) as client:

            def create(number: int) -> None:
                body = {"name": f"p{number}", "role": "viewer"}
                with self._switching:
                    for noun in ("people", "tokens"):
                        answer = client.post(f"{self._address}/api/v1/{noun}", json=body)
                        assert answer.status_code == HTTPStatus.CREATED, answer.text
                    shown = {"Authorization": f"Bearer {answer.json()['token']}"}
                    found = client.get(f"{self._address}/api/v1/me", headers=shown)
                assert found.json()["role"] == "viewer", found.text
                self.names.append(body["name"])

            self._call(create)

    def _call_sql(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:

            def enqueue(number: int) -> int:
                row = connection.execute(
                    "select mainspring.enqueue('note', jsonb_build_object('number', %s::int))",
                    (number,),
                ).fetchone()
                assert row is not None
                return int(row[0])

            self._call(lambda number: self.job_ids.append(enqueue(number)))

    def _call(self, do: Callable[[int], None]) -> None:
        number = 0
        while not self._stopping.wait(_PACE_SECONDS):
            number += 1
            try:
                do(number)
            except (AssertionError, httpx.HTTPError, psycopg.Error) as problem:
                self.refused.append(f"{type(problem).__name__}: {problem}")
