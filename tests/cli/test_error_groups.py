"""`mainspring errors ...`, and retrying the jobs of an error."""

import json

import pytest

from tests.support.commands import sentence, table
from tests.support.failing import DAY, NOW, fail


def test_errors_are_listed_with_what_is_needed_to_retry_them(each_command, connection):
    fail(connection, "known", 9, at=NOW - 3 * DAY)
    job_ids = fail(connection, "known", 2, sample="ValueError: no 7")
    fail(connection, "fresh")

    listed, fresh, past = each_command(
        ["errors", "list"], ["errors", "list", "--new"], ["errors", "list", "--since", "7d"]
    )

    first, second = table(listed)
    assert (first["KEY"], first["NEW"], first["COUNT"]) == ("fresh", "true", "1")
    assert (second["KEY"], second["NEW"], second["COUNT"]) == ("known", "false", "2")
    assert (second["DEFINITIONS"], second["ERROR"]) == ("work", "ValueError: no 7")
    assert second["JOBS"] == ", ".join(map(str, reversed(job_ids)))
    assert [row["KEY"] for row in table(fresh)] == ["fresh"]
    assert {row["KEY"]: row["COUNT"] for row in table(past)} == {"known": "11", "fresh": "1"}


def test_one_error_is_shown_with_the_command_that_retries_it(each_command, connection):
    fail(connection, "a", 2)
    fail(connection, "~other")

    shown, other, as_json, missing = each_command(
        ["errors", "show", "a"],
        ["errors", "show", "~other"],
        ["errors", "show", "a", "--json"],
        ["errors", "show", "b"],
    )

    assert "mainspring jobs bulk retry --error-key a" in shown.stdout
    assert "bulk retry" not in other.stdout
    assert json.loads(as_json.stdout)["count"] == 2
    assert sentence(missing) == (
        "error: there is no error 'b'; list errors with `mainspring errors list`"
    )


@pytest.mark.parametrize("since", ["soon", "367d", "-1h"])
def test_a_since_that_is_no_duration_is_refused(command, since):
    refused = command("errors", "list", "--since", since)

    assert refused.returncode == 2
    assert "--since" in refused.stderr


def test_the_jobs_of_an_error_are_counted_then_retried(
    each_command, command, start, connection, database_url
):
    fail(connection, "a", 3)
    fail(connection, "b", 2)

    counted, listed = each_command(
        ["jobs", "bulk", "retry", "--error-key", "a", "--dry-run"],
        ["jobs", "list", "--error-key", "b", "--json"],
    )
    start("worker", MAINSPRING_DATABASE_URL=database_url)
    done = command("jobs", "bulk", "retry", "--error-key", "a", "--yes", "--watch")

    assert counted.stdout == "3 jobs would be affected by retry\n"
    assert [job["error_key"] for job in json.loads(listed.stdout)] == ["b", "b"]
    assert done.returncode == 0
    left = "select error_key, count(*) from mainspring.job_status where state = 'failed' group by 1"
    assert connection.execute(left).fetchall() == [("b", 2)]
