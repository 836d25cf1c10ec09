"""The doctor: which checks are made, and what becomes of one that fails."""

import psycopg
import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.services import doctor
from mainspring.services.doctor_checks import CHECKS
from mainspring.settings import load
from tests.support.databases import database_of, owned_database, role
from tests.support.doctors import doctor_of


def test_all_checks_are_made_by_default_and_each_once():
    assert doctor.ensure_checks([]) == tuple(CHECKS)
    assert doctor.ensure_checks(["D13", "D02", "D13"]) == ("D02", "D13")


def test_a_check_that_does_not_exist_is_refused():
    with pytest.raises(InvalidOption, match=r"such as D13, not 'D99'"):
        doctor.ensure_checks(["D99"])


async def test_a_check_that_takes_too_long_is_a_finding_and_hides_no_other(
    database_url: str, connection: psycopg.Connection
):
    connection.execute("alter table mainspring.jobs disable row level security")
    with psycopg.connect(database_url) as other:
        # Whoever reads the table waits, and is ended by the timeout for locks.
        other.execute("lock table mainspring.events in access exclusive mode")
        async with doctor_of(database_url) as known:
            found = await known.findings("D25", "D40")

    assert [(each.id, each.severity) for each in found] == [("D25", "critical"), ("D40", "warning")]
    assert found[1].fact.startswith("the check failed: canceling statement due to lock timeout")


async def test_a_check_is_ended_by_its_own_timeout(
    database_url: str, connection: psycopg.Connection
):
    connection.execute(
        "create or replace function mainspring.past_partitions() returns setof text"
        " language sql as $$ select pg_sleep(60)::text $$"
    )
    async with doctor_of(database_url) as known:
        database = known.database
        report = await doctor.examine(database, database.settings, only=["D29", "D31"], seconds=0.2)

    (finding,) = report.findings
    assert (finding.id, finding.fact) == ("D29", "the check did not finish within 0.2 seconds")
    assert finding.advice.startswith("mainspring doctor --only D29")


async def test_what_a_login_may_not_read_is_a_note(server_url: str):
    with (
        owned_database(server_url) as url,
        psycopg.connect(url, autocommit=True) as owner,
        role(server_url) as reader,
    ):
        owner.execute(f"grant usage on schema mainspring to {reader}".encode())
        readers = url.replace("//", f"//{reader}:{reader}@", 1)
        name = database_of(url)
        at = readers.rpartition("@")[2]
        async with doctor_of(f"postgresql://{reader}:{reader}@{at}") as known:
            found = await known.findings("D17", "D31", "D40")
        assert name in at
        owner.execute(f"revoke all on schema mainspring from {reader}".encode())

    notes = [(each.id, each.severity) for each in found if each.id != "D17"]
    assert notes == [("D31", "note"), ("D40", "note")]
    assert "this login may not look: permission denied for table jobs" in found[-2].fact


async def test_a_database_that_does_not_answer_is_an_error():
    settings = load(database_url="postgresql://127.0.0.1:1/none")
    async with doctor_of("postgresql://127.0.0.1:1/none") as known:
        with pytest.raises(Exception, match="cannot connect"):
            await doctor.examine(known.database, settings)
