"""A command says which embedded database it uses, unless it is the one of a running `up`.

`test_worker.py` does so with an embedded server that runs.
"""

from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.cli import last_up
from mainspring.db.embedded import default_data_dir
from mainspring.settings import Settings
from tests.support.processes import says


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "mainspring").mkdir()
    return tmp_path


def said(data_dir: Path | None, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that uses the embedded database of this directory, or the default, says."""
    with Mainspring(settings=Settings(data_dir=data_dir)) as app:
        last_up.say_which(app.database)
    return capsys.readouterr().err


def test_after_up_has_ended_a_command_says_that_it_uses_another(
    start, database_url, config, capsys
):
    up = start(
        *("up", "--port", "0"),
        MAINSPRING_DATABASE_URL=database_url,
        XDG_CONFIG_HOME=str(config),
    )
    says(up, "Ctrl-C stops it")
    while_it_runs = said(None, capsys)
    up.stop()

    assert "; the running `mainspring up` used another: pass --database-url" in while_it_runs
    assert said(None, capsys) == (
        f"note: this is the embedded database in {default_data_dir()}; the last `mainspring up` "
        "used another: pass --database-url\n"
    )


def test_the_database_of_a_running_up_needs_no_note(config, capsys):
    before = said(config / "a b", capsys)
    with Mainspring(settings=Settings(data_dir=config / "a b")) as app:
        last_up.keep(app.database)

    assert before == f"note: this is the embedded database in {config}/a b\n"
    assert said(config / "a b", capsys) == ""
    assert said(None, capsys).endswith(f"pass --data-dir '{config}/a b'\n")


def test_who_has_named_a_directory_is_not_told_of_another(config, capsys):
    with Mainspring(settings=Settings(data_dir=config / "a")) as app:
        last_up.keep(app.database)

    assert said(config / "b", capsys) == f"note: this is the embedded database in {config}/b\n"
