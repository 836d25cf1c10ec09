"""`mainspring worker` and `mainspring up`: started, used and stopped like a person would."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from tests.support.commands import mainspring
from tests.support.processes import says

ADA = '{"name": "Ada"}'
OWN_APP = """
from mainspring import Mainspring
from mainspring.settings import load

app = Mainspring(settings=load(lease_seconds=77))

@app.job(queue="slow")
async def tell() -> float:
    return app.settings.lease_seconds

@app.job(queue="fast")
async def hurry() -> str:
    return "done"

@app.job(queue="slow", max_attempts=1)
def divide(by: int) -> float:
    return 1 / by
"""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder that the embedded server's own user can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-up-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_up_starts_a_database_and_a_worker_and_ctrl_c_ends_both(start, data_dir):
    up = start("up", "--app", "examples.hello:app", "--data-dir", str(data_dir))
    says(up, "worker_started")

    done = mainspring("enqueue", "hello", ADA, "--wait", "20", "--data-dir", str(data_dir))

    assert (done.stdout, done.stderr, done.returncode) == ('"Hello, Ada!"\n', "", 0)
    assert f"embedded PostgreSQL in {data_dir}" in up.log
    assert f"enqueue hello '{ADA}'\n" in up.log
    up.signal(SIGINT)
    assert up.exit_code() == 0
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    listed = mainspring("jobs", "list", "--data-dir", str(data_dir))
    assert listed.stderr == f"note: this is the embedded database in {data_dir}\n"


def test_a_worker_runs_jobs_until_it_is_told_to_stop(start, command, database_url):
    url = {"MAINSPRING_DATABASE_URL": database_url}
    worker = start("worker", "--app", "examples.hello:app", "--log-format", "json", **url)

    done = command("enqueue", "hello", ADA, "--wait", "20")

    assert (done.stdout, done.returncode) == ('"Hello, Ada!"\n', 0)
    worker.signal(SIGTERM)
    assert worker.exit_code() == 0
    events = [json.loads(line)["event"] for line in worker.log.splitlines()]
    assert events == ["worker_started", "worker_stopping", "worker_stopped"]


def test_a_worker_keeps_to_its_queues_and_to_the_settings_of_the_app(
    start, each_command, database_url, tmp_path, connection
):
    (tmp_path / "own.py").write_text(OWN_APP)
    url = {"MAINSPRING_DATABASE_URL": database_url}
    worker = start("worker", "--app", "own:app", "--queues", "slow", cwd=tmp_path, **url)
    worker.started(connection)

    fast, slow = each_command(["enqueue", "hurry"], ["enqueue", "tell", "--wait", "20"])

    assert slow.stdout == "77.0\n"
    query = "select state from mainspring.job_status where job_id = 1"
    assert connection.execute(query).fetchone() == ("queued",)
    assert fast.stdout == "1\n"
    assert worker.stop() == 0


def test_a_job_that_fails_is_told_to_who_waits(start, command, database_url, tmp_path, connection):
    (tmp_path / "own.py").write_text(OWN_APP)
    url = {"MAINSPRING_DATABASE_URL": database_url}
    start("worker", "--app", "own:app", cwd=tmp_path, **url).started(connection)

    done = command("enqueue", "divide", '{"by": 0}', "--wait", "20")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: job 1 is dead_letter: ZeroDivisionError")


def test_up_says_that_it_runs_commands(start, database_url):
    url = {"MAINSPRING_DATABASE_URL": database_url, "MAINSPRING_COMMAND_DIRECTORIES": "/usr/bin"}
    plain, own = start("up", **url), start("up", "--app", "examples.hello:app", **url)

    says(plain, "  worker    SQL functions and commands (queue default); your own jobs")
    says(own, "  worker    examples.hello:app: hello, wobbly and commands (queues ")


def test_without_an_app_up_runs_what_needs_no_code(start, database_url):
    up = start("up", MAINSPRING_DATABASE_URL=database_url)
    says(up, "SQL functions (queue default); your own jobs: --app module:name")
    says(up, "scheduler_started")
    says(up, "worker_started")

    up.signal(SIGINT)
    assert up.exit_code() == 0
