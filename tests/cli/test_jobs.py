"""`mainspring enqueue` and `mainspring jobs ...`, each in a process of its own."""

import json

import pytest
import yaml

from examples import hello
from mainspring.testing import bind, drain
from tests.support import reading
from tests.support.commands import sentence, table

ADA = '{"name": "Ada"}'


@pytest.fixture
def finished(database_url, connection) -> int:
    """The id of a job that has succeeded."""
    with bind(hello.app, database_url):
        job_id = hello.hello.enqueue(name="Ada").id
        drain(hello.app)
    return job_id


def test_enqueue_prints_the_job_and_list_shows_it(command):
    enqueued = command("enqueue", "hello", ADA)
    listed = command("jobs", "list")

    assert (enqueued.stdout, enqueued.returncode) == ("1\n", 0)
    (job,) = table(listed)
    assert (job["ID"], job["STATE"], job["DEFINITION"]) == ("1", "queued", "hello")


def test_enqueue_takes_every_option(command, connection):
    options = ["--queue", "fast", "--priority", "5", "--delay", "60.5", "--dedupe-key", "k"]
    done = command("enqueue", "hello", ADA, *options, "--idempotency-key", "i", "--json")

    made = json.loads(done.stdout)
    assert (made["id"], made["is_new"], made["job"]["queue"]) == ("1", True, "fast")
    job = reading.job(connection, 1)
    assert (job["queue"], job["priority"], job["dedupe_key"]) == ("fast", 5, "k")
    assert (job["scheduled_for"] - job["created_at"]).total_seconds() == 60.5
    again = command("enqueue", "hello", ADA, "--idempotency-key", "i")
    assert again.stdout == "1\n"


def test_enqueue_waits_for_the_result_only_as_long_as_it_is_told(command):
    done = command("enqueue", "hello", ADA, "--wait", "0.1")

    assert done.returncode == 1
    assert done.stderr.startswith("error: timed out waiting for job 1, which is still queued")


def test_a_wait_that_ends_says_why_the_job_has_not_started(each_command):
    nobody, later, approved = each_command(
        ["enqueue", "hello", ADA, "--wait", "0.1"],
        ["enqueue", "hello", ADA, "--delay", "5m", "--wait", "0.1"],
        ["enqueue", "hello", ADA, "--approvals", "1", "--wait", "0.1"],
    )

    said = "still queued: no live worker serves its queue default; try `mainspring worker --queues"
    assert said in nobody.stderr
    assert "still queued: it was enqueued for later; it is due at" in later.stderr
    assert "still awaiting_approval: it needs 1 more of 1 approvals" in approved.stderr
    assert "try `mainspring approvals approve 3`" in approved.stderr


def test_a_wait_for_a_remote_worker_says_so(each_command, connection):
    connection.execute("insert into mainspring.definitions (key, kind) values ('far', 'remote')")

    (done,) = each_command(["enqueue", "far", "--wait", "0.1"])

    assert "start the program that runs far, which claims its jobs over the API" in done.stderr


def test_list_filters_and_speaks_json(each_command):
    _, _, found, running, several, newest = each_command(
        ["enqueue", "hello", ADA, "--queue", "a"],
        ["enqueue", "hello", ADA, "--queue", "b"],
        ["jobs", "list", "--queue", "b", "--json"],
        ["jobs", "list", "--state", "running"],
        ["jobs", "list", "--state", "running", "--state", "queued", "--queue", "a", "--queue", "b"],
        ["jobs", "list", "--limit", "1", "--output", "yaml"],
    )

    (job,) = json.loads(found.stdout)
    assert (job["id"], job["queue"], job["state"]) == ("2", "b", "queued")
    assert "payload" not in job
    assert (table(running), running.stderr) == ([], "No jobs.\n")
    assert [job["ID"] for job in table(several)] == ["2", "1"]
    assert [job["id"] for job in yaml.safe_load(newest.stdout)] == ["2"]


def test_a_time_is_taken_with_a_zone_and_without(each_command):
    filters = ("--created-after", "--created-before", "--slot-at")
    written = ("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-01-31T12:00:00")

    each = [["jobs", "list", name, at] for name in filters for at in written]
    bulk = ["jobs", "bulk", "cancel", "--created-before", written[0], "--dry-run"]

    for done in each_command(*each, bulk):
        assert done.returncode == 0, done.stderr


def test_a_time_with_a_zone_is_the_instant_it_names(each_command):
    _, none, one = each_command(
        ["enqueue", "hello", ADA],
        ["jobs", "list", "--created-after", "2999-01-01T00:30:00+01:00"],
        ["jobs", "list", "--created-after", "2026-01-01T00:30:00+01:00"],
    )

    assert (len(table(none)), len(table(one))) == (0, 1)


def test_show_tells_the_job_and_its_attempts(each_command, finished):
    show = ["jobs", "show", str(finished)]
    shown, as_json = each_command(show, [*show, "--json"])
    facts = json.loads(as_json.stdout)

    assert '"Hello, Ada!"' in shown.stdout
    assert "attempt 1: succeeded" in shown.stdout
    assert (facts["id"], facts["state"], facts["result"]) == ("1", "succeeded", "Hello, Ada!")
    assert [attempt["state"] for attempt in facts["attempts"]] == ["succeeded"]


def test_show_labels_what_an_attempt_printed_and_says_its_exit_code(command, connection, finished):
    connection.execute("update mainspring.attempts set status = 'failed', error = 'no luck'")
    connection.execute(
        "insert into mainspring.outputs (job_id, fence, exit_code, stdout_tail, stderr_tail)"
        r" select job_id, fence, 3, 'fine', E'not\nfine\n' from mainspring.attempts"
    )

    shown = command("jobs", "show", str(finished)).stdout

    first, *others = shown[shown.index("attempt 1") :].splitlines()
    assert first.startswith("attempt 1: failed, worker 1, exit code 3, ")
    assert others == [
        *("  stdout: fine", "  stderr:", "    not", "    fine", "  error: no luck"),
    ]


def test_a_job_is_canceled_retried_with_another_payload_and_deleted(command, connection):
    command("enqueue", "hello", ADA)

    assert command("jobs", "cancel", "1", "--reason", "no").stdout == "job 1 is canceled\n"
    assert reading.job(connection, 1)["last_error"] == "no"
    bob = '{"name": "Bob"}'
    assert command("jobs", "retry", "1", "--payload", bob).stdout == "job 1 is queued\n"
    assert reading.job(connection, 1)["payload"] == {"name": "Bob"}
    assert command("jobs", "delete", "1", "--yes").stdout == "job 1 is deleted\n"
    assert reading.states(connection) == {}


def test_delete_asks_first_and_no_is_no(command, connection, finished):
    done = command("jobs", "delete", str(finished), stdin="n\n")

    assert done.returncode == 1
    assert reading.state(connection, finished) == "succeeded"


def test_what_a_job_does_not_allow_is_said_in_a_sentence(each_command, finished):
    refused = {
        "job 1 is succeeded; it cannot become canceled": ["cancel", "1"],
        "job 1 is succeeded; it cannot become queued": ["retry", "1"],
        "there is no job 99": ["show", "99"],
        "there is no job 98": ["delete", "98", "--yes"],
    }
    answers = each_command(*(["jobs", *arguments] for arguments in refused.values()))

    for said, done in zip(refused, answers, strict=True):
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {said}\n")


def test_a_dedupe_key_that_is_taken_is_no_mistake_but_not_done_either(each_command):
    enqueue = ["enqueue", "hello", ADA, "--dedupe-key", "k"]
    _, done = each_command(enqueue, enqueue)

    assert (done.returncode, done.stderr) == (1, "error: job 1 already has the dedupe key 'k'\n")


def test_jobs_are_counted_and_then_canceled_by_filter(each_command, command, start, database_url):
    *_, counted, refused = each_command(
        ["enqueue", "hello", ADA, "--queue", "left"],
        ["enqueue", "hello", ADA, "--queue", "left"],
        ["jobs", "bulk", "cancel", "--queue", "left", "--dry-run"],
        ["jobs", "bulk", "cancel"],
    )
    kept = command("jobs", "bulk", "cancel", "--queue", "left", stdin="n\n")
    start("worker", MAINSPRING_DATABASE_URL=database_url)
    done = command("jobs", "bulk", "cancel", "--queue", "left", "--yes", "--watch")

    assert counted.stdout == "2 jobs would be affected by cancel\n"
    assert refused.returncode == 2
    assert "all" in sentence(refused)
    assert kept.returncode == 1
    assert "Cancel 2 jobs?" in kept.stderr
    assert done.stdout.startswith(
        "job 3 is processing 2 jobs; follow it with `mainspring jobs show 3 --watch`"
    )
    states = json.loads(command("jobs", "list", "--queue", "left", "--json").stdout)
    assert [job["state"] for job in states] == ["canceled", "canceled"]


def test_a_name_that_looks_like_markup_is_printed_as_it_is(each_command):
    *_, listed, shown = each_command(
        ["enqueue", "hello", ADA, "--queue", "[/x]"],
        ["jobs", "list"],
        ["jobs", "show", "1"],
    )

    assert "[/x]" in listed.stdout
    assert "[/x] (priority 100)" in shown.stdout
