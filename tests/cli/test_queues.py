"""`mainspring queues` as a person meets it."""

import json

from tests.support.commands import sentence, table


def test_a_queue_is_paused_listed_and_resumed(each_command):
    paused, until, listed, facts, resumed, none = each_command(
        ["queues", "pause", "mail", "--for", "1h", "--reason", "provider down"],
        ["queues", "pause", "other", "--until", "2090-01-07T06:00Z"],
        ["queues", "list"],
        ["queues", "list", "--json"],
        ["queues", "resume", "mail"],
        ["queues", "resume", "mail"],
    )

    assert paused.stdout.startswith("Queue mail is paused until ")
    assert until.stdout.startswith("Queue other is paused until 2090-01-07 06:00:00 UTC")
    mail, other = table(listed)
    assert "provider down" in mail["PAUSED"]
    assert "until 2090-01-07" in other["PAUSED"]
    assert json.loads(facts.stdout)[0]["pause"]["reason"] == "provider down"
    assert resumed.stdout == "Queue mail is resumed.\n"
    assert (none.returncode, "queue 'mail' is not paused" in sentence(none)) == (1, True)


def test_mistakes_are_answered_with_a_sentence(each_command):
    passed, both, endless = each_command(
        ["queues", "pause", "mail", "--until", "2020-01-01"],
        ["queues", "pause", "mail", "--until", "2090-01-01", "--for", "1h"],
        ["queues", "pause", "mail", "--for", "soon"],
    )

    assert "until must be an instant in the next 100 years" in sentence(passed)
    assert "until and duration exclude each other" in sentence(both)
    assert "--for must be a duration up to 366d" in sentence(endless)
    assert {done.returncode for done in (passed, both, endless)} == {2}
