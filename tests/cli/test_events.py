"""`mainspring events` as a person meets it."""

import json

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import events
from tests.support.commands import sentence, table


def dispatch(url: str) -> None:
    with Mainspring(url) as app:
        app.events.dispatch()


@pytest.fixture
def failed(database_url: str, connection: psycopg.Connection) -> int:
    """An event of which one trigger made a job, and one a failure."""
    events.insert_trigger(connection)
    events.insert_trigger(connection, "broken", payload={"size": "{{event.size}}"})
    event_id = events.emit(connection)
    dispatch(database_url)
    return event_id


def test_an_event_is_emitted_and_shown(each_command, database_url):
    emitted, told, listed, shown = each_command(
        ["events", "emit", "provider.changed", "--context", '{"size": 3}'],
        ["events", "emit", "list.created", "--correlation-id", "order-7", "--json"],
        ["events", "list"],
        ["events", "show", "1"],
    )

    assert (emitted.returncode, emitted.stdout) == (0, "1\n")
    assert json.loads(told.stdout) == {"id": "2"}
    newest, oldest = table(listed)
    assert (newest["ID"], newest["NAME"], newest["STATE"]) == ("2", "list.created", "waits")
    assert oldest["NAME"] == "provider.changed"
    for words in ("provider.changed", '{"size":3}', "waits", "event:1"):
        assert words in shown.stdout


def test_what_came_of_an_event_is_shown(failed, each_command):
    listed, shown, facts = each_command(
        ["events", "list", "--failed"],
        ["events", "show", str(failed)],
        ["events", "show", str(failed), "--json"],
    )

    assert "1 failed" in listed.stdout
    assert "there is no 'event.size'" in listed.stdout
    assert "trigger resync: enqueued, job 1" in shown.stdout
    assert "trigger broken: failed: there is no 'event.size'; add |default" in shown.stdout
    told = json.loads(facts.stdout)
    assert (told["id"], told["jobs"], told["failures"]) == (str(failed), 1, 1)
    assert [each["job_id"] for each in told["dispatches"]] == [None, "1"]


def test_an_event_is_replayed(failed, each_command, database_url):
    (one,) = each_command(["events", "replay", str(failed), "--trigger", "resync"])
    dispatch(database_url)
    every, again, shown = each_command(
        ["events", "replay", str(failed)],
        ["events", "replay", str(failed)],
        ["events", "show", str(failed)],
    )

    assert one.stdout == f"event {failed} is replayed for resync, replay 1\n"
    told = f"event {failed} is replayed for all matching triggers, replay 2\n"
    assert every.stdout == told
    assert (again.returncode, sentence(again)) == (
        1,
        f"error: event {failed} has not been handled yet; it will be as soon as a scheduler runs",
    )
    assert "trigger resync (replay 1): enqueued, job 2" in shown.stdout


def test_lists_take_filters_and_say_when_there_is_nothing(each_command):
    each_command(["events", "emit", "a.b"], ["events", "emit", "c"])
    none, one, before, waiting = each_command(
        ["events", "list", "--handled"],
        ["events", "list", "--name", "a.*", "--json"],
        ["events", "list", "--before", "2", "--json"],
        ["events", "list", "--waiting", "--limit", "1", "--json"],
    )

    assert none.stderr == "No events.\n"
    names = [[each["name"] for each in json.loads(done.stdout)] for done in (one, before, waiting)]
    assert names == [["a.b"], ["a.b"], ["c"]]


def test_a_context_that_no_program_can_hold_is_shown(each_command, connection):
    connection.execute("select mainspring.emit('a', '{\"n\": 1e5000}')")
    shown, facts = each_command(["events", "show", "1"], ["events", "show", "1", "--json"])

    assert (shown.returncode, facts.returncode) == (0, 0)


def test_a_mistake_is_answered_with_one_sentence(failed, each_command):
    wrong = {
        "name: 'a b' must consist of letters": ["emit", "a b"],
        "context: is not JSON": ["emit", "a", "--context", "{folder: 1}"],
        "context: must be a JSON object": ["emit", "a", "--context", "[1]"],
        "name: 'a b' must be": ["list", "--name", "a b"],
    }
    for said, done in zip(
        wrong, each_command(*(["events", *words] for words in wrong.values())), strict=True
    ):
        assert done.returncode == 2
        assert said in sentence(done)


def test_what_is_not_there_is_no_mistake_in_the_command(failed, each_command):
    gone, misspelt, homeless = each_command(
        ["events", "show", "999"],
        ["events", "replay", str(failed), "--trigger", "resink"],
        ["events", "emit", "a", "--tenant", "nobody"],
    )

    assert (gone.returncode, sentence(gone)) == (1, "error: there is no event 999")
    assert misspelt.returncode == 1
    assert sentence(misspelt) == "error: there is no trigger 'resink'; did you mean 'resync'?"
    assert (homeless.returncode, sentence(homeless)) == (1, "error: there is no tenant 'nobody'")
