"""Mistakes on the command line: one sentence that says what to do, exit code 2, no traceback."""

import sys
from pathlib import Path

import pytest

from mainspring import __version__
from tests.support.commands import clean_environment, mainspring, sentence
from tests.support.databases import empty_database
from tests.support.processes import ROOT

NOWHERE = "postgresql://ada:secret@127.0.0.1:1/none"
NO_WHEEL = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if "pgserver" in name else find(name, *more)
from mainspring.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "No such command 'nope'"),
        (["jobs", "nope"], "No such command 'nope'"),
        (["worker"], "Missing option '--app'"),
        (["enqueue", "--bogus"], "No such option: --bogus"),
        (["jobs", "show", "x"], "Invalid value for 'job_id'"),
        (["jobs", "list", "--limit", "0"], "Invalid value for '--limit'"),
    ],
)
def test_a_command_that_cannot_be_read_says_how_to_get_help(arguments, said):
    done = mainspring(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "--help" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["enqueue", "hello", "{bad"], "the payload is not JSON"),
        (["enqueue", "hello", "[]"], "must be a JSON object"),
        (["enqueue", "hello", "{}", "--priority", "1001"], "priority must be a whole number"),
        (["enqueue", "hello", "{}", "--delay", "-1"], "delay must not be negative"),
        (["jobs", "list", "--state", "done"], "--state must be one of awaiting_approval, blocked"),
        (["worker", "--app", "hello"], "--app is module:name, such as jobs:app, not 'hello'"),
        (["worker", "--app", "examples.hello:ap"], "did you mean examples.hello:app?"),
        (["worker", "--app", "examples.hello:hello"], "is a JobFunction, not a Mainspring"),
        (["worker", "--app", "nowhere.jobs:app"], "there is no module 'nowhere' here"),
        (["worker", "--app", "examples.hello:app", "--concurrency", "0"], "setting concurrency"),
        (["jobs", "list", "--database-url", NOWHERE], "ada:***@127.0.0.1:1/none: Connection"),
        (
            ["worker", "--app", "examples.hello:app", "--database-url", NOWHERE],
            "Connection refused",
        ),
        (["up", "--database-url", NOWHERE], "Connection refused"),
        (["migrate", "--database-url", "mysql://db"], "cannot connect to mysql://db"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, said):
    done = mainspring(*arguments)
    line = sentence(done).removeprefix("Mainspring 0.1.0")

    assert done.returncode == 2
    assert line.startswith("error: ")
    assert said in line
    assert "secret" not in line


def test_an_unknown_definition_is_a_mistake(command):
    done = command("enqueue", "helo")

    assert (done.returncode, sentence(done)) == (2, "error: no definition has the key 'helo'")


def test_an_app_that_fails_to_import_says_where(tmp_path: Path):
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    done = mainspring("worker", "--app", "broken:app", cwd=tmp_path)

    line = sentence(done)
    assert "importing 'broken' failed: ZeroDivisionError: division by zero" in line
    assert line.endswith("broken.py, line 2)")


def test_a_database_without_the_schema_says_what_to_run(server_url):
    with empty_database(server_url) as url:
        for arguments in (["worker", "--app", "examples.hello:app"], ["jobs", "list"]):
            done = mainspring(*arguments, MAINSPRING_DATABASE_URL=url)

            assert done.returncode == 2
            assert "run `mainspring migrate`" in sentence(done)


def test_a_wrong_password_and_a_wrong_database_name_the_reason(server_url):
    done = mainspring("jobs", "list", MAINSPRING_DATABASE_URL=f"{server_url}&dbname=nowhere")

    assert done.returncode == 2
    assert 'database "nowhere" does not exist' in sentence(done)


def test_without_the_embedded_server_the_message_says_how_to_get_it(tmp_path: Path):
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", NO_WHEEL, "jobs", "list"],
        cwd=ROOT,
        env=clean_environment(MAINSPRING_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "pip install 'mainspring[embedded]'" in sentence(done)


def test_help_lists_the_commands_and_version_is_the_packages():
    shown = mainspring("--help").stdout

    for name in ("up", "worker", "enqueue", "migrate", "version", "jobs"):
        assert f"│ {name} " in shown
    assert mainspring("version").stdout == f"{__version__}\n"
