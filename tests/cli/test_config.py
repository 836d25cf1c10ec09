"""`mainspring config ...` and `--config`: what is printed, written and refused."""

import json
from functools import partial
from pathlib import Path

import pytest

from mainspring.services.secrets import generate_key
from mainspring.settings.model import FIELDS
from tests.support.commands import Done, mainspring, sentence, table
from tests.support.processes import says

FILE = "mainspring.toml"
NOWHERE = "postgresql://ada:hunter2@127.0.0.1:1/none"


@pytest.fixture
def config(tmp_path: Path):
    """Runs `mainspring config ...` in an empty directory."""
    return partial(mainspring, "config", cwd=tmp_path)


def lines(done: Done) -> list[str]:
    return [line.rstrip() for line in done.stdout.splitlines()]


def test_get_prints_a_table_with_where_each_was_set(config, tmp_path):
    (tmp_path / FILE).write_text("port = 9000\nlease_seconds = 30\n")
    done = config("get", "--database-url", NOWHERE, MAINSPRING_LEASE_SECONDS="20")

    found = {row["KEY"]: list(row.values())[1:] for row in table(done)}
    assert list(found) == list(FIELDS)
    assert found["database_url"][:2] == ["postgresql://ada:***@127.0.0.1:1/none", "flag"]
    assert found["port"][:3] == ["9000", "file", "0 to 65,535"]
    assert found["lease_seconds"][:2] == ["20", "environment"]
    assert found["concurrency"][:2] == ["100", "default"]
    assert found["concurrency"][3] == "jobs one worker process runs at a time"


def test_get_prints_one_value(config):
    assert config("get", "default_schedules").stdout == "false\n"
    assert config("get", "database_url").stdout == "\n"


def test_get_prints_json_and_yaml(config, tmp_path):
    (tmp_path / FILE).write_text("port = 9000")
    port = {
        "key": "port",
        "value": 9000,
        "range": "0 to 65,535",
        "meaning": "port the server listens on; 0 picks a free one",
        "from": "file",
    }

    assert json.loads(config("get", "port", "--json").stdout) == port
    assert port in json.loads(config("get", "--output", "json").stdout)
    assert config("get", "port", "-o", "yaml").stdout.startswith("key: port\nvalue: 9000\n")


def test_get_shows_no_secret(config, tmp_path):
    key = generate_key()
    urls = f"condition_database_url = '{NOWHERE}'\nrole_urls = ['ada={NOWHERE}']"
    (tmp_path / FILE).write_text(f"encryption_keys = '{key}'\n{urls}")

    for arguments in (["get"], ["get", "--json"], ["check", "--json"]):
        done = config(*arguments, MAINSPRING_DATABASE_URL="hunter2 is no URL")
        assert done.stdout
        assert key not in done.stdout
        assert "hunter2" not in done.stdout
    for name in ("encryption_keys", "role_urls"):
        assert config("get", name).stdout == "[redacted]\n"


def test_get_of_what_is_no_setting_says_what_was_meant(config):
    done = config("get", "prot")

    assert (done.returncode, sentence(done)) == (
        2,
        "error: there is no setting 'prot'; did you mean port?",
    )


def test_set_writes_the_file_and_says_what(config, tmp_path):
    done = config("set", "lease_seconds", "30")

    assert (done.returncode, done.stdout, done.stderr) == (
        *(0, "lease_seconds = 30 in mainspring.toml\n"),
        "",
    )
    assert (tmp_path / FILE).read_text() == "lease_seconds = 30\n"
    assert config("get", "lease_seconds").stdout == "30\n"


def test_set_writes_each_kind_of_value(config, tmp_path):
    for key, text in {
        "use_pooler": "yes",
        "poll_seconds": "0.5",
        "data_dir": "/srv/data",
    }.items():
        config("set", key, text, "--file", "other.toml")

    assert (tmp_path / "other.toml").read_text() == (
        'use_pooler = true\npoll_seconds = 0.5\ndata_dir = "/srv/data"\n'
    )
    assert not (tmp_path / FILE).exists()


WRONG = {
    "error: setting port: '99999' is not a whole number from 0 to 65,535": ["port", "99999"],
    "error: there is no setting 'prot'; did you mean port?": ["prot", "1"],
    "error: there is no setting 'hots'; did you mean host?": ["hots", "--unset"],
    "error: setting encryption_keys: key number 1 is invalid": ["encryption_keys", "hunter2"],
    "error: give a value, or --unset to remove the setting": ["port"],
    "error: give a value, or --unset to": ["port", "1", "--unset"],
}


def test_set_writes_nothing_that_is_wrong(config, tmp_path):
    for said, arguments in WRONG.items():
        done = config("set", *arguments)
        assert done.returncode == 2
        assert sentence(done).startswith(said)
        assert "hunter2" not in done.stderr

    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_read_from_standard_input_and_not_said(config, tmp_path):
    key = generate_key()
    done = config("set", "encryption_keys", "-", stdin=f"{key}\n")

    assert done.stdout == 'encryption_keys = "[redacted]" in mainspring.toml\n'
    assert done.stderr == ""
    assert (tmp_path / FILE).read_text() == f'encryption_keys = "{key}"\n'


def test_set_warns_of_what_makes_it_vain_or_unsafe(config, tmp_path):
    (tmp_path / FILE).touch(mode=0o644)
    done = config("set", "database_url", NOWHERE, MAINSPRING_DATABASE_URL="postgresql:///app")

    assert done.returncode == 0
    assert [line.partition(";")[0] for line in done.stderr.splitlines()] == [
        "warning: MAINSPRING_DATABASE_URL is set in the environment and has precedence here",
        "warning: mainspring.toml contains database_url and is readable by others",
    ]
    assert "hunter2" not in done.stdout + done.stderr


def test_unset_removes_a_setting_and_what_is_none(config, tmp_path):
    (tmp_path / FILE).write_text("# Ours.\nprot = 1\nport = 1\n")

    said = [config("set", key, "--unset").stdout for key in ("prot", "port", "port")]

    assert said == [
        "prot is no longer in mainspring.toml\n",
        "port is no longer in mainspring.toml\n",
        "port was not in mainspring.toml\n",
    ]
    assert (tmp_path / FILE).read_text() == "# Ours.\n"


def test_check_says_everything_and_exits_2(config, tmp_path):
    (tmp_path / FILE).write_text("port = 99999\nleese_seconds = 3\n")
    (tmp_path / FILE).chmod(0o600)
    done = config("check", MAINSPRING_PROT="1", MAINSPRING_COMMAND_DIRECTORIES="/nope")

    assert (done.returncode, done.stderr) == (2, "")
    assert lines(done) == [
        "error: mainspring.toml: there is no setting 'leese_seconds'; did you mean lease_seconds?",
        f"error: setting port: 99999 is not a whole number from 0 to 65,535; it is set in {FILE}",
        "error: command_directories: /nope cannot be used: No such file or directory",
        (
            "warning: MAINSPRING_PROT is not a setting and has no effect; "
            "did you mean MAINSPRING_PORT?"
        ),
        "3 errors; 1 warning",
    ]


def test_check_exits_0_when_nothing_is_wrong(config):
    quiet, doubtful = config("check"), config("check", "--json", MAINSPRING_HOST="0.0.0.0")

    assert (quiet.returncode, quiet.stdout) == (0, "nothing is wrong\n")
    assert doubtful.returncode == 0
    facts = json.loads(doubtful.stdout)
    assert (facts["errors"], facts["warnings"]) == (0, 1)
    assert [(each["level"], each["key"]) for each in facts["findings"]] == [("warning", "host")]


def test_check_asks_the_database_if_told_to(config, database_url):
    ready = config("check", "--connect", MAINSPRING_DATABASE_URL=database_url)
    away = config("check", "--connect", "--database-url", NOWHERE)

    assert (ready.returncode, ready.stdout) == (0, "nothing is wrong\n")
    assert away.returncode == 2
    assert away.stdout.startswith("error: cannot connect to postgresql://ada:***@127.0.0.1:1/none")


def test_every_command_reads_the_file_that_is_named(tmp_path):
    (tmp_path / "other.toml").write_text(f"database_url = '{NOWHERE}'")
    run = partial(mainspring, cwd=tmp_path)

    for done in (
        run("--config", "other.toml", "migrate"),
        run("worker", "--config", "other.toml"),
        run("migrate", MAINSPRING_CONFIG="other.toml"),
    ):
        assert done.returncode == 2
        assert "cannot connect to postgresql://ada:***@127.0.0.1:1/none" in done.stderr


BROKEN = {
    "error: x.toml, line 2: this is not valid TOML: Invalid value": b"port = 1\nhost = = 2\n",
    "error: x.toml, line 1: this is not UTF-8 text": b"\x80",
    "error: x.toml: there is no setting 'prot'; did you mean port?": b"prot = 1",
    "error: x.toml: 'jobs' is a table, but settings are not in tables": b"[jobs]\nport = 1",
}


def test_a_broken_file_is_one_sentence(tmp_path):
    for said, data in BROKEN.items():
        (tmp_path / "x.toml").write_bytes(data)
        done = mainspring("migrate", cwd=tmp_path, MAINSPRING_CONFIG="x.toml")

        assert (done.returncode, sentence(done).startswith(said)) == (2, True), done.stderr
    missing = mainspring("migrate", cwd=tmp_path, MAINSPRING_CONFIG="y.toml")
    assert sentence(missing).startswith("error: the settings file y.toml, named by --config or")


def test_a_role_that_goes_on_says_which_variables_it_does_not_know(start, database_url, tmp_path):
    process = start(
        "scheduler",
        cwd=tmp_path,
        MAINSPRING_DATABASE_URL=database_url,
        MAINSPRING_LEESE_SECONDS="3",
    )

    says(process, "did you mean MAINSPRING_LEASE_SECONDS?")
    says(process, "scheduler_started")


def test_the_app_reads_the_same_file_as_the_command(start, database_url, tmp_path):
    (tmp_path / "x.toml").write_text(f"database_url = '{database_url}'\nconcurrency = 7\n")
    (tmp_path / "own.py").write_text(
        "from mainspring import Mainspring\n"
        "app = Mainspring()\n"
        "print('jobs at a time:', app.settings.concurrency, flush=True)\n"
    )
    process = start("worker", "--app", "own:app", "--config", "x.toml", cwd=tmp_path)

    says(process, "jobs at a time: 7")
    says(process, "worker_started")
