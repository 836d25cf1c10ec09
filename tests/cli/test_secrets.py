"""`mainspring admin secrets ...`, and secrets as the other commands show them."""

import json

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.secrets.keys import read_keys
from mainspring.services.secrets import generate_key
from tests.support.secret_schemas import MARKED, of

OLD, NEW = generate_key(), generate_key()
PAYLOAD = '{"word": "hunter2"}'


@pytest.fixture
def login(database_url: str) -> str:
    """The key of a definition with a secret."""
    with Mainspring(database_url) as app:

        @app.job(key="login", arg_schema=of(word=MARKED, user={"type": "string"}))
        async def login(**payload: object) -> None: ...

        app.register_definitions()
    return "login"


def test_a_generated_key_is_one_line_that_the_setting_takes(command):
    first, second = (
        command("admin", "secrets", "generate-key"),
        command("admin", "secrets", "generate-key"),
    )

    assert first.stdout.endswith("\n")
    assert first.stdout != second.stdout
    assert len(read_keys(f"{first.stdout},{second.stdout}")) == 2


def test_a_rotation_says_what_it_did(command, login):
    command("enqueue", login, PAYLOAD, MAINSPRING_ENCRYPTION_KEYS=OLD)

    done = command("admin", "secrets", "rotate", MAINSPRING_ENCRYPTION_KEYS=f"{NEW},{OLD}")

    assert (done.returncode, done.stdout) == (
        0,
        "re-encrypted: 1 jobs, 0 finished jobs, 0 schedules\n",
    )


def test_a_rotation_that_leaves_something_exits_1(command, login):
    command("enqueue", login, PAYLOAD, MAINSPRING_ENCRYPTION_KEYS=OLD)

    done = command("admin", "secrets", "rotate", "--json", MAINSPRING_ENCRYPTION_KEYS=NEW)

    assert (done.returncode, json.loads(done.stdout)["unreadable"]) == (1, 1)


def test_a_rotation_without_keys_says_what_to_set(command):
    done = command("admin", "secrets", "rotate")

    assert done.returncode == 2
    assert "set MAINSPRING_ENCRYPTION_KEYS" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_key_is_not_shown(command):
    done = command("jobs", "list", MAINSPRING_ENCRYPTION_KEYS="hunter2")

    assert done.returncode == 2
    assert "encryption_keys" in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_job_is_shown_without_its_secret(command, login, flags):
    command("enqueue", login, PAYLOAD)

    done = command("jobs", "show", "1", *flags)

    assert "[redacted]" in done.stdout
    assert "hunter2" not in done.stdout


def test_a_payload_is_read_from_standard_input(command, login):
    done = command("enqueue", login, "-", stdin=PAYLOAD)

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "[redacted]" in command("jobs", "show", "1").stdout


def test_a_retry_with_what_was_shown_keeps_the_secret(command, login, database_url):
    command("enqueue", login, '{"word": "hunter2", "user": "ada"}')
    command("jobs", "cancel", "1")
    shown = json.loads(command("jobs", "show", "1", "--json").stdout)["payload"]

    done = command("jobs", "retry", "1", "--payload", json.dumps({**shown, "user": "bob"}))

    assert done.returncode == 0
    with psycopg.connect(database_url) as connection:
        stored = connection.execute("select payload from mainspring.jobs").fetchall()
    assert stored == [({"user": "bob", "word": "hunter2"},)]


def test_what_was_copied_from_a_screen_is_refused(command, login):
    done = command("enqueue", login, '{"word": "[redacted]"}')

    assert done.returncode == 2
    assert "pass the real value" in done.stderr


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_schedule_is_shown_without_its_secret(command, login, flags):
    created = command(
        *("schedules", "create", "daily", "--definition", login, "--cron", "@daily"),
        *("--payload", PAYLOAD),
    )
    done = command("schedules", "show", "daily", *flags)

    assert done.returncode == 0
    assert "hunter2" not in created.stdout + done.stdout + done.stderr
