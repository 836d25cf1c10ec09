"""The embedded server is killed under the long-running roles: their jobs go on by themselves."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGINT

import psutil
import psycopg
import pytest

from tests.support.processes import says
from tests.support.waiting import wait_until

ENQUEUE = "select mainspring.enqueue('hello', jsonb_build_object('name', 'Ada'))"
ENDED = "select state from mainspring.job_status where job_id = %s and finished_at is not null"


@pytest.fixture
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mainspring-kills-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def kill_server(data_dir: Path, *, with_children: bool) -> None:
    recorded = (data_dir / "postgres" / "postmaster.pid").read_text()
    postmaster = psutil.Process(int(recorded.split("\n")[0]))
    children = postmaster.children(recursive=True) if with_children else []
    postmaster.kill()
    for child in children:
        # Some notice by themselves that the postmaster is gone.
        with suppress(psutil.NoSuchProcess):
            child.kill()


def run_job(data_dir: Path) -> None:
    """Enqueues as soon as a server answers; unlike a command, a connection starts none."""
    url = f"postgresql://postgres@/mainspring?host={data_dir}/socket&port=5432"

    def attempt() -> int | None:
        try:
            with psycopg.connect(url) as connection:
                row = connection.execute(ENQUEUE).fetchone()
        except psycopg.OperationalError:
            return None
        return row[0] if row else None

    job_id = wait_until(attempt, 30, "the server is back")
    with psycopg.connect(url, autocommit=True) as connection:
        state = wait_until(lambda: connection.execute(ENDED, (job_id,)).fetchone(), 30)
    assert state == ("succeeded",)


@pytest.mark.parametrize(("role", "kills"), [("up", 2), ("worker", 1)])
def test_jobs_go_on_after_the_server_was_killed_again_and_again(start, data_dir, role, kills):
    process = start(role, "--app", "examples.hello:app", "--data-dir", str(data_dir))
    says(process, "worker_started")
    note = f"note: this is the embedded database in {data_dir}"
    assert (note in process.log) == (role == "worker")

    for number in range(kills):
        kill_server(data_dir, with_children=number == 1)
        run_job(data_dir)

    wait_until(lambda: process.log.count("embedded_server_back") == kills, 30)
    process.signal(SIGINT)
    assert process.exit_code() == 0
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
