"""`mainspring retention` as a person meets it."""

import json
from datetime import UTC, datetime, timedelta

import psycopg

from mainspring import JobState
from tests.support.rows import insert_job


def test_policies_are_listed_set_and_unset(each_command):
    _, listed, made, one, gone, again = each_command(
        ["tenants", "create", "acme"],
        ["retention", "list"],
        ["retention", "set", "jobs", "--state", "succeeded", "--keep", "12h", "--tenant", "acme"],
        ["retention", "set", "audit", "--keep", "1825d"],
        ["retention", "unset", "jobs", "--state", "succeeded", "--tenant", "acme", "--yes"],
        ["retention", "list", "--json"],
    )

    rows = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert rows == [
        "KIND TENANT STATE KEEP SOURCE",
        "audit all all 730 days policy",
        "events all all 30 days setting",
        "jobs all all 30 days policy",
        "jobs all succeeded 7 days policy",
        "slots all all 90 days setting",
    ]
    assert made.stdout == "Finished jobs in state succeeded of tenant acme are kept 12 hours.\n"
    assert one.stdout == "Audit entries of all tenants are kept 1825 days.\n"
    assert gone.stdout == "The retention policy for jobs in state succeeded is removed.\n"
    audit, *_ = json.loads(again.stdout)
    assert (audit["kind"], audit["keep"]) == ("audit", 1825 * 86_400.0)


def test_a_preview_says_what_would_go_by_day(each_command, connection: psycopg.Connection):
    ended = datetime.now(UTC) - timedelta(days=10)
    for state in (JobState.FAILED, JobState.FAILED, JobState.SUCCEEDED):
        insert_job(connection, state, finished_at=ended)

    now, then, nothing, programs = each_command(
        ["retention", "preview"],
        ["retention", "preview", "jobs", "--keep", "9d"],
        ["retention", "preview", "events"],
        ["retention", "preview", "jobs", "--keep", "9d", "--state", "failed", "--json"],
    )

    day = ended.date().isoformat()
    assert [line.split() for line in now.stdout.splitlines()][1] == ["jobs", day, "1", "1"]
    assert [line.split() for line in then.stdout.splitlines()][1] == ["jobs", day, "3", "1"]
    assert nothing.stderr == "The next pass removes nothing.\n"
    assert json.loads(programs.stdout) == {
        "count": 3,
        "already": 1,
        "days": [{"kind": "jobs", "day": day, "count": 3, "already": 1}],
    }


def test_mistakes_are_answered_with_a_sentence(each_command):
    done = each_command(
        ["retention", "set", "job", "--keep", "1d"],
        ["retention", "set", "jobs", "--keep", "1 day"],
        ["retention", "set", "jobs", "--keep", "36501d"],
        ["retention", "set", "slots", "--keep", "23h"],
        ["retention", "set", "slots", "--keep", "30d", "--state", "failed"],
        ["retention", "set", "jobs", "--keep", "30d", "--state", "faild"],
        ["retention", "set", "jobs", "--keep", "30d", "--tenant", "acme"],
        ["retention", "unset", "slots", "--yes"],
        ["retention", "preview", "--keep", "30d"],
    )

    for said, (text, code) in zip(
        done,
        [
            ("kind must be one of jobs, audit, slots, events, not 'job'; did you mean jobs?", 2),
            ("keep must be a duration up to 36500d such as 90s", 2),
            ("keep must be a duration up to 36500d such as 90s", 2),
            ("keep must be from 1 to 36500 days for slots, not 23:00:00", 2),
            ("state is for the kind jobs; slots have no state", 2),
            ("did you mean failed?", 2),
            ("there is no tenant 'acme'", 1),
            ("there is no retention policy for all tenants for slots", 1),
            ("keep needs a kind: jobs, audit, slots or events", 2),
        ],
        strict=True,
    ):
        assert text in said.stderr
        assert said.returncode == code
