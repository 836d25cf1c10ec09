"""`mainspring limits`, `approvals` and `flows` as a person meets them."""

import json
import re

import pytest

from examples import hello
from mainspring.testing import bind
from tests.support.commands import sentence


@pytest.fixture
def flow_id(database_url: str) -> int:
    with bind(hello.app, database_url):
        flow = hello.app.flow("greetings")
        flow.chain(flow.add("hello", {"name": "a"}, step="one"), flow.add("hello", {"name": "b"}))
        return flow.enqueue().id


def test_a_limit_is_set_shown_and_removed(each_command):
    made, listed, shown, removed, none = each_command(
        ["limits", "set", "openai", "--rate", "60/minute", "--concurrency", "2"],
        ["limits", "list"],
        ["limits", "show", "openai", "--json"],
        ["limits", "remove", "openai", "--yes"],
        ["limits", "list"],
    )

    assert made.stdout == "Limit openai is set: 2 at once, 60/minute per key.\n"
    assert "openai" in listed.stdout
    assert json.loads(shown.stdout)["rate"] == "60/minute"
    assert removed.stdout == "Limit openai is removed.\n"
    assert none.stderr == "No limits; set one with `mainspring limits set`.\n"


def test_mistakes_are_answered_with_a_sentence(server_command):
    mistakes = [
        ("limits set openai", 2, "set needs --concurrency, --key-concurrency or --rate"),
        ("limits set openai --concurrency -1", 2, "--concurrency must be 0 or more"),
        ("limits set openai --rate often", 2, "rate must be written like 100/minute"),
        ("limits set 1st --concurrency 1", 2, "limit must start with a letter"),
        ("limits show openai", 1, "there is no limit 'openai'"),
        ("limits remove openai", 1, "there is no limit 'openai'"),
        ("approvals approve 999999", 1, "there is no job 999999"),
        ("approvals show 999999", 1, "job 999999 did not require approval"),
        ("flows show 999999", 1, "there is no flow 999999"),
        ("flows cancel 999999", 1, "there is no flow 999999"),
        ("flows retry 999999", 1, "there is no flow 999999"),
    ]

    for words, code, said in mistakes:
        done = server_command(*words.split())
        assert said in sentence(done)
        assert done.returncode == code, words


def test_a_job_is_approved_and_another_rejected(each_command):
    # A database starts with job 1.
    *_, listed, approved, rejected, none, shown, job = each_command(
        ["enqueue", "hello", '{"name": "ann"}', "--approvals", "1"],
        ["enqueue", "hello", '{"name": "bob"}', "--approvals", "1"],
        ["approvals", "list", "--json"],
        ["approvals", "approve", "1", "--by", "ann"],
        ["approvals", "reject", "2", "--reason", "no need", "--by", "ann"],
        ["approvals", "list"],
        ["approvals", "show", "2"],
        ["jobs", "show", "2"],
    )

    assert [each["job_id"] for each in json.loads(listed.stdout)] == ["1", "2"]
    assert approved.stdout == "Job 1 is approved.\n"
    assert rejected.stdout == "Job 2 is rejected.\n"
    assert none.stderr == "No jobs await approval.\n"
    assert "ann rejected" in shown.stdout
    assert "rejected by ann: no need" in job.stdout


def test_a_job_that_needs_more_says_so(each_command):
    _, done = each_command(
        ["enqueue", "hello", '{"name": "a"}', "--approvals", "2"],
        ["approvals", "approve", "1", "--by", "ann"],
    )

    assert done.stdout == "Job 1 is approved by you, and needs more approvals.\n"


def test_a_flow_is_listed_shown_canceled_and_retried(each_command, flow_id):
    listed, shown, facts, canceled, retried = each_command(
        ["flows", "list"],
        ["flows", "show", str(flow_id)],
        ["flows", "show", str(flow_id), "--json"],
        ["flows", "cancel", str(flow_id)],
        ["flows", "retry", str(flow_id)],
    )

    assert "greetings" in listed.stdout
    assert "one" in shown.stdout
    assert "blocked" in shown.stdout
    members = json.loads(facts.stdout)["members"]
    assert [member["state"] for member in members] == ["queued", "blocked"]
    assert canceled.stdout == f"Flow {flow_id}: 2 jobs canceled.\n"
    assert retried.stdout == f"Flow {flow_id}: 2 jobs requeued.\n"


def test_a_member_sees_its_own_flows_and_is_told_who_sees_all(server_command, flow_id):
    refused = {
        "show": f"you have no flow {flow_id}; members can see and change only what they enqueued",
        "cancel": "An admin can change any flow with `mainspring admin flows`",
    }
    for verb, said in refused.items():
        done = server_command("flows", verb, str(flow_id), role="member")
        assert said in sentence(done)
        assert done.returncode == 1
    none = server_command("flows", "list", role="member")
    assert none.stderr == "No flows; start one with `mainspring flows start`.\n"
    admin = server_command("flows", "cancel", str(flow_id), "--json", role="admin")
    assert json.loads(admin.stdout) == {"jobs": 2}


def test_a_flow_is_started_from_its_steps(server_command):
    hello = {"definition": "hello", "payload": {"name": "a"}}
    steps = json.dumps([{"step": "a", **hello}, {"step": "b", "after": ["a"], **hello}])
    started = server_command("flows", "start", "pair", "-", stdin=steps, role="member")
    own = server_command("flows", "list", role="member")
    mistakes = {
        "steps are not JSON": "[",
        "steps (0.step) is missing": '[{"definition": "hello"}]',
        "'a' comes after 'b', which is not a step of this flow": (
            '[{"step": "a", "definition": "hello", "after": ["b"]}]'
        ),
    }

    assert (started.returncode, started.stderr) == (0, "")
    assert re.fullmatch(r"Flow \d+ is started: 2 jobs\.\n", started.stdout)
    assert "pair" in own.stdout
    for said, text in mistakes.items():
        assert said in sentence(server_command("flows", "start", "pair", text))


def test_limits_are_an_operators(server_command):
    made = server_command("limits", "set", "openai", "--rate", "60/minute", "--burst", "3")
    shown = server_command("limits", "show", "openai", role="member")
    refused = server_command("limits", "remove", "openai", "--yes", role="member")
    kept = server_command("limits", "remove", "openai", stdin="n\n")

    assert made.stdout == "Limit openai is set: 60/minute per key in bursts of 3.\n"
    assert "60/minute per key in bursts of 3" in shown.stdout
    assert "the role member may not write limits; it requires the role operator" in sentence(
        refused
    )
    assert "Remove the limit openai (60/minute per key in bursts of 3)?" in kept.stderr
    assert kept.returncode == 1


def test_a_job_is_enqueued_after_another(each_command):
    *_, shown = each_command(
        ["enqueue", "hello", '{"name": "a"}'],
        ["enqueue", "hello", '{"name": "b"}', "--after", "1"],
        ["jobs", "show", "2"],
    )

    assert "blocked (waits for parents)" in shown.stdout
