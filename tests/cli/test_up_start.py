"""Commands that are run while `mainspring up` is starting."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mainspring.cli import last_up
from mainspring.domain.errors.client import ServerUnreachable
from mainspring.settings import Settings
from tests.support.commands import mainspring, sentence
from tests.support.processes import WorkerProcess, says
from tests.support.waiting import wait_until

# Not imported before the test says so.
SLOW_APP = """
import pathlib, time
from mainspring import Mainspring

while not pathlib.Path("go").exists():
    time.sleep(0.01)
app = Mainspring()
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def slow_up(start: Callable[..., WorkerProcess], database_url: str, config: Path) -> WorkerProcess:
    (config / "slow.py").write_text(SLOW_APP)
    return start(
        *("up", "--app", "slow:app", "--port", "0"),
        cwd=config,
        MAINSPRING_DATABASE_URL=database_url,
        XDG_CONFIG_HOME=str(config),
    )


def test_a_command_waits_for_up_instead_of_using_another_database(slow_up, start, config):
    record = config / "mainspring" / "last_up.json"
    wait_until(record.exists, 30, "it notes that it is starting")

    listing = start("jobs", "list", XDG_CONFIG_HOME=str(config))
    says(listing, f"waiting for `mainspring up` (process {slow_up.pid}), which is starting")
    (config / "go").touch()

    assert listing.exit_code() == 0
    assert "embedded database" not in listing.log
    assert "ID\tSTATE" in listing.log


def test_up_that_takes_too_long_is_an_error(config, monkeypatch):
    monkeypatch.setattr(last_up, "PATIENCE_SECONDS", 0.0)
    last_up.keep_starting(Settings(data_dir=config / "a b"))

    with pytest.raises(ServerUnreachable, match="is still starting; run the command again") as said:
        last_up.await_start()

    assert f"or pass --data-dir '{config}/a b' to use" in str(said.value)


def test_up_that_died_while_it_started_is_not_waited_for(slow_up, config):
    record = config / "mainspring" / "last_up.json"
    wait_until(record.exists, 30, "it notes that it is starting")
    assert last_up._read() == (slow_up.pid, None, False)

    slow_up.kill()

    assert not last_up.await_start()


def test_an_explicit_data_directory_is_used_beside_an_unrelated_up(start, database_url, config):
    ours = str(config)
    environment = {"MAINSPRING_DATABASE_URL": database_url, "XDG_CONFIG_HOME": ours}
    says(start("up", "--port", "0", **environment), "Ctrl-C stops")
    (config / "file").touch()

    file = str(config / "file")
    done = mainspring("jobs", "list", MAINSPRING_DATA_DIR=file, XDG_CONFIG_HOME=ours)

    assert f"{config}/file is not a directory" in sentence(done)
    assert mainspring("jobs", "list", XDG_CONFIG_HOME=ours).returncode == 0
