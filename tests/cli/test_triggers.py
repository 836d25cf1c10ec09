"""`mainspring triggers` as a person meets it."""

import json

import pytest

from tests.support.commands import sentence, table

PAYLOAD = '{"name": "{{event.folder}} of {{event.size|default(0)}}"}'
RESYNC = ["create", "resync", "--event", "provider.*", "--definition", "hello"]
RESYNC += ["--payload", PAYLOAD]


@pytest.fixture
def call(each_command):
    return lambda *commands: each_command(*(["triggers", *words] for words in commands))


def test_a_trigger_is_made_shown_changed_and_removed(call):
    made, changed, off, shown, on, listed, removed, none = call(
        [*RESYNC, "--dedupe-window", "5m", "--queue", "slow"],
        ["update", "resync", "--event", "list.*", "--clear", "queue", "--unknown-paths", "null"],
        ["disable", "resync"],
        ["show", "resync"],
        ["enable", "resync"],
        ["list"],
        ["delete", "resync", "--yes"],
        ["list"],
    )

    assert made.stdout == "trigger resync is created\n"
    assert changed.stdout == "trigger resync is updated\n"
    assert off.stdout == "trigger resync is disabled\n"
    for words in ("disabled", "list.*", "hello", "{{event.folder}}", "5 min", "null"):
        assert words in shown.stdout
    assert "slow" not in shown.stdout
    assert on.stdout == "trigger resync is enabled\n"
    (row,) = table(listed)
    assert list(row.values())[:4] == ["resync", "enabled", "list.*", "hello"]
    assert removed.stdout == "trigger resync is deleted\n"
    assert none.stderr == "No triggers; create one with `mainspring triggers create`.\n"


def test_json_and_yaml_are_for_programs(call):
    call([*RESYNC, "--dedupe-window", "5m", "--priority", "3", "--disabled"])
    shown, listed, after, none = call(
        ["show", "resync", "--json"],
        ["list", "--event", "provider.x", "--json"],
        ["list", "--after", "resync", "--output", "yaml"],
        ["list", "--enabled", "--json"],
    )

    facts = json.loads(shown.stdout)
    assert (facts["name"], facts["event"], facts["dedupe_window"]) == ("resync", "provider.*", 300)
    assert (facts["priority"], facts["is_enabled"], facts["payload"]) == (
        3,
        False,
        json.loads(PAYLOAD),
    )
    assert json.loads(listed.stdout) == [facts]
    assert (json.loads(none.stdout), after.stdout) == ([], "[]\n")


def test_a_trigger_is_tried_without_enqueueing(call, each_command):
    call(RESYNC)
    tried, wrong = call(
        ["test", "resync", "--context", '{"folder": "/a"}'], ["test", "resync", "--context", "{}"]
    )
    jobs, events = each_command(["jobs", "list"], ["events", "list"])

    assert json.loads(tried.stdout) == {"name": "/a of 0"}
    assert wrong.returncode == 2
    assert "there is no 'event.folder'" in sentence(wrong)
    assert (jobs.stderr, events.stderr) == ("No jobs.\n", "No events.\n")


def test_a_mistake_is_answered_with_one_sentence(call):
    call(RESYNC)
    wrong = {
        "did you mean 'hello'?": ["create", "x", "--event", "a", "--definition", "helo"],
        "event: 'a*' must be an event name": [
            "create",
            "x",
            "--event",
            "a*",
            "--definition",
            "hello",
        ],
        "the payload is not JSON": [*RESYNC[:1], "x", *RESYNC[2:6], "--payload", "{a}"],
        "payload must be a JSON object": [*RESYNC[:1], "x", *RESYNC[2:6], "--payload", "[1]"],
        "unknown name 'evnt'": [*RESYNC[:1], "x", *RESYNC[2:6], "--payload", '{"a": "{{evnt}}"}'],
        "--dedupe-window must be a dur": [*RESYNC[:1], "x", *RESYNC[2:], "--dedupe-window", "x"],
        "update needs an option that changes something": ["update", "resync"],
        "did you mean dedupe_window?": ["update", "resync", "--clear", "dedup-window"],
        "'list.x' does not match": ["test", "resync", "--event", "list.x"],
        "context: is not JSON": ["test", "resync", "--context", "{"],
        "--priority must be 1000 or less": ["update", "resync", "--priority", "1001"],
    }
    for said, done in zip(wrong, call(*wrong.values()), strict=True):
        assert done.returncode == 2, done.args
        assert said in sentence(done)


def test_what_is_not_there_or_taken_is_no_mistake_in_the_command(call):
    call(RESYNC)
    misspelt, gone, taken = call(["show", "resink"], ["delete", "x", "--yes"], RESYNC)

    said = "error: there is no trigger 'resink'; did you mean 'resync'?"
    assert (misspelt.returncode, sentence(misspelt)) == (1, said)
    assert (gone.returncode, sentence(gone)) == (1, "error: there is no trigger 'x'")
    assert taken.returncode == 1
    assert "trigger 'resync' already exists" in sentence(taken)


def test_removing_asks_first(command):
    command("triggers", *RESYNC)

    assert command("triggers", "delete", "resync", stdin="n\n").returncode == 1
    assert command("triggers", "show", "resync").returncode == 0


def test_a_member_sees_triggers_of_a_server_and_changes_none(server_command):
    assert server_command("triggers", *RESYNC).stdout == "trigger resync is created\n"
    shown = server_command("triggers", "show", "resync", role="member")
    refused = server_command("triggers", "disable", "resync", role="member")
    emitted = server_command("events", "emit", "provider.changed", role="member")

    assert "provider.*" in shown.stdout
    assert sentence(refused) == (
        "error: the role member may not write triggers; it requires the role admin or operator"
    )
    assert (refused.returncode, emitted.stdout) == (2, "1\n")
