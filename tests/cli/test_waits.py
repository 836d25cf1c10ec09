"""`mainspring limits`, `approvals` and `flows` as a person meets them."""

import json

import pytest

from examples import hello
from mainspring.testing import bind


@pytest.fixture
def flow_id(database_url: str) -> int:
    with bind(hello.app, database_url):
        flow = hello.app.flow("greetings")
        flow.chain(flow.add("hello", {"name": "a"}, step="one"), flow.add("hello", {"name": "b"}))
        return flow.enqueue().id


def test_a_limit_is_set_shown_and_removed(command):
    done = command("limits", "set", "openai", "--rate", "60/minute", "--concurrency", "2")
    assert done.stdout == "Limit openai is set: 2 at once, 60/minute per key.\n"

    assert "openai" in command("limits", "list").stdout
    assert json.loads(command("limits", "show", "openai", "--json").stdout)["rate"] == "60/minute"
    assert command("limits", "remove", "openai").stdout == "Limit openai is removed.\n"
    assert command("limits", "list").stdout == "No limits.\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["set", "openai"], 2, "set needs --concurrency, --key-concurrency or --rate"),
        (["set", "openai", "--rate", "often"], 2, "rate must be written like 100/minute"),
        (["set", "open ai", "--concurrency", "1"], 2, "limit must start with a letter"),
        (["show", "openai"], 1, "there is no limit 'openai'"),
        (["remove", "openai"], 1, "there is no limit 'openai'"),
    ],
)
def test_a_wrong_limit_is_one_sentence(command, words, code, message):
    done = command("limits", *words)

    assert (done.returncode, message in done.stderr) == (code, True)
    assert "Traceback" not in done.stderr


def test_a_job_is_approved_and_another_rejected(command):
    for name in ("ann", "bob"):
        command("enqueue", "hello", json.dumps({"name": name}), "--approvals", "1")
    listed = json.loads(command("approvals", "list", "--json").stdout)
    first, second = (each["job_id"] for each in listed)

    approved = command("approvals", "approve", first, "--by", "ann")
    assert approved.stdout == f"Job {first} is approved.\n"
    rejected = command("approvals", "reject", second, "--reason", "no need", "--by", "ann")
    assert rejected.stdout == f"Job {second} is rejected.\n"

    assert command("approvals", "list").stdout == "Nothing awaits approval.\n"
    assert "ann rejected" in command("approvals", "show", second).stdout
    assert "rejected by ann: no need" in command("jobs", "show", second).stdout


def test_a_job_that_needs_more_says_so(command):
    command("enqueue", "hello", '{"name": "a"}', "--approvals", "2")
    (first,) = json.loads(command("approvals", "list", "--json").stdout)

    done = command("approvals", "approve", first["job_id"], "--by", "ann")

    assert done.stdout == f"Job {first['job_id']} is approved by you, and needs more approvals.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["approve", "999999"], "there is no job 999999"),
        (["show", "999999"], "job 999999 has not asked for approval"),
    ],
)
def test_an_approval_that_is_not_there_is_one_sentence(command, words, message):
    done = command("approvals", *words)

    assert (done.returncode, message in done.stderr) == (1, True)


def test_a_flow_is_listed_shown_canceled_and_retried(command, flow_id):
    assert "greetings" in command("flows", "list").stdout
    shown = command("flows", "show", str(flow_id)).stdout
    assert "one" in shown
    assert "blocked" in shown
    facts = json.loads(command("flows", "show", str(flow_id), "--json").stdout)
    assert [member["state"] for member in facts["members"]] == ["queued", "blocked"]

    assert command("flows", "cancel", str(flow_id)).stdout == f"Flow {flow_id}: 2 jobs canceled.\n"
    assert command("flows", "retry", str(flow_id)).stdout == f"Flow {flow_id}: 2 jobs put back.\n"


def test_a_flow_that_is_not_there_is_one_sentence(command):
    for words in (["show"], ["cancel"], ["retry"]):
        done = command("flows", *words, "999999")
        assert (done.returncode, "there is no flow 999999" in done.stderr) == (1, True)


def test_a_job_is_enqueued_after_another(command):
    first = json.loads(command("enqueue", "hello", '{"name": "a"}', "--json").stdout)["id"]

    done = command("enqueue", "hello", '{"name": "b"}', "--after", first, "--json")

    shown = command("jobs", "show", json.loads(done.stdout)["id"]).stdout
    assert "blocked (waits for parents)" in shown


def test_a_definition_shows_its_limit_and_its_approval(command):
    done = command("definitions", "show", "hello", "--json")

    assert json.loads(done.stdout)["approvals_needed"] == 0
