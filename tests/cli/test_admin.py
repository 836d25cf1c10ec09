"""`mainspring admin jobs` beside `mainspring jobs`: everyone's jobs beside one's own."""

import json

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.types import JobState
from mainspring.services import housekeeping
from tests.support import rows
from tests.support.commands import sentence, table


@pytest.fixture
def system_job(database_url: str, connection: psycopg.Connection) -> int:
    """A job that is the system's own."""
    with Mainspring(database_url) as app:
        app.blocking(housekeeping.install(app.database, with_schedules=False))
        return app.enqueue("mainspring.prune_keys", {}).id


def test_the_systems_jobs_are_steered_by_admins_alone(each_command, system_job):
    job = str(system_job)
    refused = each_command(*(["jobs", verb, job] for verb in ("cancel", "retry", "delete")))
    canceled, retried, deleted = each_command(
        ["admin", "jobs", "cancel", job, "--reason", "not now"],
        ["admin", "jobs", "retry", job, "--json"],
        ["admin", "jobs", "delete", job, "--yes"],
    )

    for verb, done in zip(("cancel", "retry", "delete"), refused, strict=True):
        assert sentence(done) == (
            f"error: job {job} belongs to the system (mainspring.prune_keys); an admin can "
            f"{verb} it with `mainspring admin jobs {verb} {job}`"
        )
    assert canceled.stdout == f"job {job} is canceled\n"
    assert json.loads(retried.stdout) == {"id": job, "state": "queued"}
    assert deleted.stdout == f"job {job} is deleted\n"


def test_lists_are_of_the_system_or_of_all_tenants(each_command, system_job, connection):
    rows.insert_tenant(connection, "acme")
    both = {"definition": "mainspring.prune_keys", "schedule_id": 1}
    pruning = rows.insert_job(connection, JobState.QUEUED, **both)
    scheduled = rows.insert_job(connection, JobState.QUEUED, definition="hello", schedule_id=1)
    other = rows.insert_job(connection, JobState.QUEUED, definition="hello", tenant_id="acme")

    system, every, newest, stats, facts = each_command(
        ["admin", "jobs", "list", "--system", "--json"],
        ["admin", "jobs", "list", "--all-tenants"],
        ["admin", "jobs", "list", "--all-tenants", "--limit", "1", "--json"],
        ["admin", "jobs", "stats", "--all-tenants"],
        ["admin", "jobs", "stats", "--json"],
    )

    assert [int(job["id"]) for job in json.loads(system.stdout)] == [
        scheduled,
        pruning,
        system_job,
    ]
    ids = [other, scheduled, pruning, system_job]
    assert [int(row["ID"]) for row in table(every)] == ids
    assert [job["tenant"] for job in json.loads(newest.stdout)] == ["acme"]
    told = [line.split()[:4] for line in stats.stdout.splitlines()[1:]]
    assert told == [["acme", "0", "0", "1"], ["default", "0", "0", "3"]]
    assert json.loads(facts.stdout)["counts"]["queued"] == 3


def test_a_member_has_its_own_jobs_and_is_told_who_has_the_others(server_command, system_job):
    own = server_command("enqueue", "hello", '{"name": "Ada"}', role="member").stdout.strip()
    listed = server_command("jobs", "list", "--json", role="member")
    other = server_command("jobs", "cancel", str(system_job), role="member")
    admin = server_command("admin", "jobs", "list", role="member")
    wide = server_command("admin", "jobs", "list", "--all-tenants", role="admin")
    done = server_command("admin", "jobs", "cancel", own, role="admin")

    assert [job["id"] for job in json.loads(listed.stdout)] == [own]
    assert (other.returncode, other.stdout) == (1, "")
    assert f"you have no job {system_job}; members can see and change only" in sentence(other)
    assert "`mainspring admin jobs`" in sentence(other)
    assert sentence(admin) == (
        "error: your role is member; this takes an admin. Your own jobs are under `mainspring jobs`"
    )
    assert "only operators may use --all-tenants" in sentence(wide)
    assert done.stdout == f"job {own} is canceled\n"


def test_a_member_is_not_shown_a_count_of_what_was_not_counted(server_command):
    done = server_command("jobs", "stats", role="member")

    counts = {row["STATE"]: row["JOBS"] for row in table(done)}
    assert (counts["queued"], counts["succeeded"], counts["failed"]) == ("0", "-", "-")
    assert done.stderr.startswith("finished jobs are counted for admins")
