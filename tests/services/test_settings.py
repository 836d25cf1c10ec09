"""A check of settings finds all that is wrong, and asks databases only if told to."""

import os
from pathlib import Path

import pytest

from mainspring.services import settings as services
from mainspring.services.secrets import generate_key
from mainspring.settings.rules import Level
from tests.support.databases import empty_database

NOWHERE = "postgresql://ada:hunter2@127.0.0.1:1/none"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MAINSPRING_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write(text: str, mode: int = 0o600) -> None:
    path = Path("mainspring.toml")
    path.write_text(text)
    path.chmod(mode)


def told(**flags: object) -> list[str]:
    return [f"{finding.level}: {finding.message}" for finding in services.check(**flags)]


def test_the_defaults_are_right():
    assert services.check() == []


def test_everything_is_told_at_once_and_errors_come_first(monkeypatch):
    write("port = 99999\nprot = 1\nhost = '0.0.0.0'")
    monkeypatch.setenv("MAINSPRING_LEASE_SECONDS", "0")
    monkeypatch.setenv("MAINSPRING_PROT", "1")

    assert [line.partition(";")[0] for line in told()] == [
        "error: mainspring.toml: there is no setting 'prot'",
        "error: setting lease_seconds: '0' is not a number from 1 to 3600",
        "error: setting port: 99999 is not a whole number from 0 to 65,535",
        "warning: MAINSPRING_PROT is not a setting and has no effect",
        "warning: host 0.0.0.0 can be reached from other machines",
    ]


def test_a_value_that_another_place_overrides_is_checked_too(monkeypatch):
    write("port = 99999")
    monkeypatch.setenv("MAINSPRING_PORT", "1")

    (line,) = told()
    assert line.endswith("it is set in mainspring.toml")


def test_a_file_that_cannot_be_read_does_not_hide_the_environment(monkeypatch):
    write("port = = 1")
    monkeypatch.setenv("MAINSPRING_PORT", "x")

    assert len(told()) == 2


def test_a_url_that_cannot_be_read_is_wrong_and_its_password_not_shown():
    write(
        "condition_database_url = 'mysql://ada:hunter2@db'\n"
        "role_urls = ['ada=postgresql://ada:hunter2@[::1']"
    )
    lines = told(database_url="postgresql://ada:hunter2@[::1")

    assert [line.partition(" cannot")[0] for line in lines] == [
        "error: setting database_url",
        "error: setting condition_database_url",
        "error: setting role_urls: the URL of ada",
    ]
    assert "hunter2" not in "".join(lines)


def test_directories_of_commands_have_to_exist_and_be_safe(tmp_path):
    (tmp_path / "safe").mkdir(mode=0o755)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "file").touch()
    write(f"command_directories = '{tmp_path}/safe:{tmp_path}/open:{tmp_path}/file:/nope:safe'")

    assert [line.replace("command_directories: ", "") for line in told()] == [
        f"error: {tmp_path}/file is not a directory",
        "error: /nope cannot be used: No such file or directory",
        f"warning: {tmp_path}/open is writable by anyone, so anyone can add programs that jobs run",
        "warning: safe depends on the directory that a worker starts in; use an absolute path",
    ]


@pytest.mark.parametrize("host", ["", "a" * 70, "256.0.0.1"])
def test_a_host_that_is_no_address_is_wrong(host):
    write(f"host = '{host}'")

    assert told()[0] == f"error: setting host: {host!r} is not an address of this machine"


@pytest.mark.parametrize(("mode", "count"), [(0o600, 0), (0o640, 1), (0o604, 1), (0o400, 0)])
@pytest.mark.parametrize(
    "line",
    [f"encryption_keys = '{generate_key()}'", "database_url = 'postgresql://a:b@db/x'"],
    ids=["keys", "url"],
)
def test_a_secret_that_others_may_read_is_doubtful(line, mode, count):
    write(line, mode)

    found = services.check()

    assert [finding.level for finding in found] == [Level.WARNING] * count
    assert all("run `chmod 600 mainspring.toml`" in finding.message for finding in found)


def test_a_file_without_secrets_may_be_read_but_not_written_by_others():
    write("database_url = 'postgresql://ada@db/x'", 0o644)
    assert told() == []

    write("port = 1", 0o646)
    assert ["mainspring.toml is writable by others" in line for line in told()] == [True]


def test_what_would_upset_a_terminal_is_spelt_out():
    assert services.shown("host", "\x1b[31m\udc80ä") == "\\x1b[31m\\udc80ä"


def test_an_empty_variable_of_a_url_is_doubtful(monkeypatch):
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", "")

    (line,) = told()
    assert line.startswith("warning: MAINSPRING_DATABASE_URL is set but empty")


async def test_a_database_that_is_ready_is_not_mentioned(database_url):
    flags = {"database_url": database_url, "condition_database_url": database_url}

    assert await services.check_connections(**flags) == []


async def test_databases_that_do_not_answer_are_wrong():
    flags = {"database_url": NOWHERE, "condition_database_url": NOWHERE}
    found = await services.check_connections(role_urls=f"ada={NOWHERE}", **flags)

    assert [(finding.level, finding.key) for finding in found] == [
        (Level.ERROR, "database_url"),
        (Level.ERROR, "condition_database_url"),
        (Level.ERROR, "role_urls"),
    ]
    assert "hunter2" not in str(found)


async def test_a_database_without_the_schema_is_wrong(server_url):
    with empty_database(server_url) as url:
        (found,) = await services.check_connections(database_url=url)

    assert "run `mainspring migrate`" in found.message
