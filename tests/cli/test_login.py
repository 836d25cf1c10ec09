"""`mainspring login`, `logout`, `profiles`, and the profile that `mainspring up` leaves."""

import json
import re
import stat
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring
from tests.support.commands import Done, mainspring, sentence
from tests.support.processes import WorkerProcess, says

Command = Callable[..., Done]
TOKEN = f"msk_{'a' * 8}_{'b' * 43}"


@pytest.fixture
def away(tmp_path: Path) -> Command:
    """Runs `mainspring ...` as someone who has no database, with profiles of their own."""
    return partial(mainspring, XDG_CONFIG_HOME=str(tmp_path / "config"))


@pytest.fixture
def server(start, database_url: str) -> str:
    """Its address."""
    running = start("server", "--port", "0", MAINSPRING_DATABASE_URL=database_url)
    return address_of(running)


@pytest.fixture
def token(database_url: str) -> str:
    """Of a member."""
    with Mainspring(database_url) as app:
        return app.tokens.create("ci", "member", tenant_id="default").text


def address_of(running: WorkerProcess) -> str:
    says(running, "http://")
    (found,) = re.findall(r"server    (http://\S+)", running.log)
    return str(found)


def test_who_has_logged_in_needs_no_more_to_be_told(away, server, token, tmp_path):
    logged_in = away("login", server, "--profile", "here", stdin=f"{token}\n")
    enqueued = away("enqueue", "hello", '{"name": "Ada"}')
    listed = away("jobs", "list", "--json")
    profiles = away("profiles", "list")
    kept = tmp_path / "config" / "mainspring" / "profiles.json"
    mode = stat.S_IMODE(kept.stat().st_mode)
    left = away("logout")

    assert logged_in.stdout == f"logged in to {server} as ci, member in default (profile here)\n"
    assert enqueued.stdout == "1\n"
    assert [job["created_by"] for job in json.loads(listed.stdout)] == ["ci"]
    assert profiles.stdout.splitlines()[1].split() == ["here", "yes", server]
    assert token not in profiles.stdout
    assert mode == 0o600
    assert left.stdout == f"forgot {server} (profile here)\n"
    assert token not in kept.read_text()


def test_a_login_link_logs_in_once(away, server, command):
    link = command("login-link", "--url", server).stdout.strip()

    first, again = away("login", link), away("login", link)

    assert first.stdout == f"logged in to {server} as operator, operator (profile 127.0.0.1)\n"
    assert again.returncode == 2
    assert "was used before" in sentence(again)


def test_the_environment_names_a_server_and_a_token(away, server, token):
    told = {"MAINSPRING_SERVER": server, "MAINSPRING_TOKEN": token}

    done = away("jobs", "list", **told)
    without = away("jobs", "list", MAINSPRING_SERVER=server)
    refused = away("tenants", "list", "--server", server, MAINSPRING_TOKEN="ms_nonsense")

    assert (done.stderr, done.returncode) == ("No jobs.\n", 0)
    assert without.returncode == 2
    assert sentence(without).startswith(f"error: no token for {server}; set MAINSPRING_TOKEN")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["login", "ftp://x"], "t\n", "must be like https://jobs.example.com, not 'ftp://x'"),
        (["login", "http://127.0.0.1:1"], f"{TOKEN}\n", "cannot reach http://127.0.0.1:1"),
        (["login", "http://127.0.0.1:1"], "t\n", "a token, which begins with msk_ and has 56"),
        (["login", "http://127.0.0.1:1"], "", "needs a token"),
        (["login", "http://127.0.0.1:1", "--name", "a b"], "t\n", "letters, digits"),
        (["login", "http://127.0.0.1:1", "--name", "local"], "t\n", "`mainspring up`"),
        (["logout"], "", "you are not logged in to any server"),
        (["jobs", "list", "--profile", "nowhere"], "", "there is no profile 'nowhere'"),
        (["profiles", "use", "nowhere"], "", "there is no profile 'nowhere'"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(away, words, stdin, said):
    done = away(*words, stdin=stdin)

    assert done.returncode == 2
    assert said in sentence(done)


def test_profiles_that_someone_has_spoilt_are_named(away, tmp_path):
    path = tmp_path / "config" / "mainspring" / "profiles.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")

    assert f"{path} is damaged; delete it and log in again" in sentence(away("jobs", "list"))


def test_commands_beside_up_find_it_by_themselves(away, start, database_url, tmp_path):
    config = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    up = start("up", "--app", "examples.hello:app", MAINSPRING_DATABASE_URL=database_url, **config)
    server = address_of(up)
    says(up, "Ctrl-C stops it.")

    waited = away("enqueue", "hello", '{"name": "Ada"}', "--wait", "20")
    profiles = away("profiles", "list", "--json")
    overview = away("top", "--once", "--json")
    code = up.stop()

    assert waited.stdout == '"Hello, Ada!"\n'
    assert json.loads(profiles.stdout) == [
        {"name": "local", "server": server, "tenant": None, "is_used": True}
    ]
    facts = json.loads(overview.stdout)
    assert [worker["is_alive"] for worker in facts["workers"]] == [True]
    assert facts["summary"]["counts"]["succeeded"] == 1
    assert code == 0
    assert away("profiles", "list").stderr == "No profiles; log in with `mainspring login`.\n"


def test_who_logs_out_leaves_no_session_behind(away, server, command):
    link = command("login-link", "--url", server).stdout.strip()
    away("login", link)
    mine = json.loads(away("sessions", "list", "--json").stdout)
    other = command("login-link", "--url", server).stdout.strip()
    away("login", other, "--name", "other")

    left = away("logout")
    listed = json.loads(command("sessions", "list", "--json").stdout)
    ended = command("sessions", "end", mine[0]["id"])
    refused = away("jobs", "list", "--profile", "127.0.0.1")

    assert left.stdout == f"logged out of {server} (profile other)\n"
    assert [each["id"] for each in listed] == [mine[0]["id"]]
    assert (mine[0]["person"], mine[0]["is_current"]) == ("operator", True)
    assert ended.stdout == f"Session {mine[0]['id']} is ended.\n"
    assert "expired or revoked" in sentence(refused)


def test_all_sessions_of_a_person_are_ended_at_once(away, server, command):
    link = command("login-link", "--url", server).stdout.strip()
    away("login", link)

    ended = command("sessions", "end", "--person", "operator")
    nobody = command("sessions", "list")
    unclear = command("sessions", "end")

    assert ended.stdout == "operator is logged out: 1 ended.\n"
    assert nobody.stderr == "No sessions.\n"
    assert "needs the id of a session, or --person" in sentence(unclear)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("no-such-host.invalid", "https://no-such-host.invalid"),
        ("http://no-such-host.invalid", "http://no-such-host.invalid"),
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("localhost:1", "http://localhost:1"),
    ],
)
def test_a_host_is_asked_encrypted_unless_it_is_this_machine(away, host, address):
    done = away("login", host, stdin=f"{TOKEN}\n")

    assert f"cannot reach {address}:" in sentence(done)


def token_of(config: Path) -> str:
    (profile,) = json.loads((config / "mainspring" / "profiles.json").read_text())["profiles"]
    return str(profile["token"])


def status(server: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{server}/api/v1/me", headers=headers).status_code


def test_what_a_killed_up_leaves_is_of_no_use_after_the_next_start(
    start, database_url, connection, tmp_path
):
    config = tmp_path / "config"
    told = {"MAINSPRING_DATABASE_URL": database_url, "XDG_CONFIG_HOME": str(config)}
    first = start("up", **told)
    says(first, "Ctrl-C stops it.")
    left = token_of(config)
    listed = mainspring("tokens", "list", "--json", **told)
    life = connection.execute(
        "select expires_at - now() from mainspring.tokens where kind = 'console'"
    ).fetchone()[0]
    first.kill()

    second = start("up", **told)
    says(second, "Ctrl-C stops it.")
    server, fresh = address_of(second), token_of(config)

    assert (status(server, left), status(server, fresh)) == (401, 200)
    (token,) = json.loads(listed.stdout)
    assert re.fullmatch(rf"up:.+:{first.pid}", token["name"])
    assert (token["role"], token["state"]) == ("operator", "active")
    assert life <= timedelta(minutes=10)
    assert second.stop() == 0
    consoles = "select count(*) from mainspring.tokens where kind = 'console'"
    assert connection.execute(consoles).fetchone() == (0,)


def test_a_shell_can_complete(away):
    done = away("completion", "bash")

    assert "complete -o default -F" in done.stdout
    words = {"COMP_WORDS": "mainspring jo", "COMP_CWORD": "1"}
    asked = away(**words, _MAINSPRING_COMPLETE="complete_bash")
    assert asked.stdout == "jobs\n"
