"""Approvals in the database: nothing runs before, and only the right people decide."""

import psycopg
import pytest

from tests.support.calls import call, enqueue
from tests.support.rows import insert, insert_definition, job, refused


@pytest.fixture
def asked(tx: psycopg.Connection) -> psycopg.Connection:
    """With a definition `risky` that one has to approve, and `grave` that two of three have to."""
    insert_definition(tx, "risky", approvals_needed=1, approval_expiry="1 day")
    insert_definition(tx, "grave", approvals_needed=2, approvers=["ann", "bob", "cyd"])
    return tx


def act_as(tx: psycopg.Connection, name: str) -> None:
    tx.execute("select set_config('mainspring.actor', %s, true)", (name,))


def state(tx: psycopg.Connection, job_id: int) -> tuple[str, str | None]:
    row = job(tx, job_id)
    return row["state"], row["waits_for"]


def test_a_job_that_needs_approval_awaits_it(asked):
    assert state(asked, enqueue(asked, "risky")) == ("awaiting_approval", "approval")


def test_an_approved_job_is_ready(asked):
    job_id = enqueue(asked, "risky")

    assert call(asked, "approve", job_id, reason="fine") == ["queued"]
    assert state(asked, job_id) == ("queued", None)


def test_a_rejected_job_is_canceled_and_says_by_whom_and_why(asked):
    job_id = enqueue(asked, "risky")
    act_as(asked, "ann")

    assert call(asked, "reject", job_id, "too risky") == ["canceled"]
    assert job(asked, job_id)["last_error"] == "rejected by ann: too risky"


def test_a_rejection_needs_a_reason(asked):
    job_id = enqueue(asked, "risky")

    with refused(asked, "MS003", "reason must not be empty", option="reason"):
        call(asked, "reject", job_id, "")


def test_as_many_have_to_approve_as_are_needed(asked):
    job_id = enqueue(asked, "grave")
    act_as(asked, "ann")
    assert call(asked, "approve", job_id) == ["awaiting_approval"]
    act_as(asked, "bob")

    assert call(asked, "approve", job_id) == ["queued"]


def test_the_same_person_counts_once(asked):
    job_id = enqueue(asked, "grave")
    act_as(asked, "ann")
    call(asked, "approve", job_id)

    assert call(asked, "approve", job_id) == ["awaiting_approval"]


def test_every_vote_is_in_the_audit_once_with_what_came_of_it(asked):
    grave, risky = enqueue(asked, "grave"), enqueue(asked, "risky")
    act_as(asked, "ann")
    call(asked, "approve", grave, reason="looks fine")
    call(asked, "approve", grave, reason="looks fine")
    act_as(asked, "bob")
    call(asked, "approve", grave)
    call(asked, "reject", risky, "not today")

    rows = asked.execute(
        "select actor, action, subject, reason, before ->> 'state', after ->> 'state'"
        " from mainspring.audit where noun = 'job' order by audit_id"
    ).fetchall()
    was = "awaiting_approval"
    assert rows == [
        ("ann", "approve", str(grave), "looks fine", was, was),
        ("bob", "approve", str(grave), None, was, "queued"),
        ("bob", "reject", str(risky), "not today", was, "canceled"),
    ]


def test_someone_who_is_not_asked_may_not_decide(asked):
    job_id = enqueue(asked, "grave")
    act_as(asked, "eve")
    facts = {"job_id": job_id, "actor": "eve", "approvers": ["ann", "bob", "cyd"]}

    with refused(asked, "MS032", f"eve may not decide on job {job_id}; ann, bob, cyd may", **facts):
        call(asked, "approve", job_id)
    with refused(asked, "MS032", "eve may not decide", **facts):
        call(asked, "reject", job_id, "no")


@pytest.mark.parametrize(
    ("name", "columns", "may"),
    [
        ("eve", {"role": "member", "tenant_id": "default"}, True),
        ("eve", {"role": "admin", "tenant_id": "default"}, False),
        ("eve", {"role": "member", "tenant_id": "acme"}, False),
        ("eve", {"role": "member", "tenant_id": "default", "disabled_at": "2026-01-01"}, False),
        ("role:member", {"role": "member", "tenant_id": "default"}, False),
    ],
)
def test_a_role_is_that_of_a_person_in_the_tenant(asked, name, columns, may):
    insert(asked, "people", name="eve", created_by="test", **columns)
    insert_definition(asked, "shared", approvals_needed=1, approvers=["role:member"])
    job_id = enqueue(asked, "shared")
    act_as(asked, name)

    if may:
        assert call(asked, "approve", job_id) == ["queued"]
    else:
        facts = {"job_id": job_id, "actor": name, "approvers": ["role:member"]}
        with refused(asked, "MS032", "; role:member may", **facts):
            call(asked, "approve", job_id)


def test_one_who_may_approve_may_change_their_mind(asked):
    job_id = enqueue(asked, "grave")
    act_as(asked, "ann")
    call(asked, "approve", job_id)

    assert call(asked, "reject", job_id, "on second thought") == ["canceled"]


def test_what_is_decided_stays_decided(asked):
    job_id = enqueue(asked, "risky")
    call(asked, "approve", job_id)
    facts = {"job_id": job_id, "state": "queued", "target": "rejected"}

    with refused(asked, "MS031", f"job {job_id} is queued; it cannot become rejected", **facts):
        call(asked, "reject", job_id, "too late")


def test_a_job_that_never_asked_cannot_be_approved(asked):
    job_id = enqueue(asked, "work")
    facts = {"job_id": job_id, "state": "queued", "target": "approved"}

    with refused(asked, "MS031", "it cannot become approved", **facts):
        call(asked, "approve", job_id)


def test_another_tenant_finds_no_such_job(asked):
    job_id = enqueue(asked, "risky")

    with refused(asked, "MS030", f"there is no job {job_id}", job_id=job_id):
        call(asked, "approve", job_id, tenant="acme")


def test_an_enqueue_can_ask_for_approval_by_itself(asked):
    assert state(asked, enqueue(asked, "work", approvals_needed=1))[0] == "awaiting_approval"


def test_an_enqueue_cannot_ask_for_less_than_the_definition(asked):
    job_id = enqueue(asked, "grave", approvals_needed=0)

    row = asked.execute("select needed from mainspring.approvals where job_id = %s", (job_id,))
    assert row.fetchone() == (2,)


def test_many_at_once_ask_each_for_approval(asked):
    job_ids = call(asked, "enqueue_many", "risky", ["{}", "{}"])

    rows = asked.execute("select job_id from mainspring.approvals order by job_id")
    assert rows.fetchall() == [(job_id,) for job_id in job_ids]


def test_nobody_approving_in_time_cancels_the_job(asked):
    job_id = enqueue(asked, "risky")
    assert call(asked, "expire_approvals", 10) == [0]
    asked.execute("update mainspring.approvals set expires_at = now()")

    assert call(asked, "expire_approvals", 10) == [1]
    row = job(asked, job_id)
    assert row["state"] == "canceled"
    assert row["last_error"].startswith("nobody approved it before ")


def test_what_has_expired_cannot_be_approved(asked):
    job_id = enqueue(asked, "risky")
    asked.execute("update mainspring.approvals set expires_at = now()")
    facts = {"job_id": job_id, "state": "awaiting_approval", "target": "approved"}

    with refused(asked, "MS031", "it cannot become approved", **facts):
        call(asked, "approve", job_id)


def test_a_job_canceled_meanwhile_expires_without_a_trace(asked):
    job_id = enqueue(asked, "risky")
    call(asked, "cancel", job_id, reason="not needed")
    asked.execute("update mainspring.approvals set expires_at = now()")
    call(asked, "expire_approvals", 10)

    assert job(asked, job_id)["last_error"] == "not needed"
    assert call(asked, "expire_approvals", 10) == [0]


def test_a_delayed_job_waits_for_its_time_after_approval(asked):
    job_id = enqueue(asked, "risky", delay="1 hour")
    call(asked, "approve", job_id)

    assert state(asked, job_id) == ("queued", "time")


def test_an_approved_job_waits_for_its_limit(asked):
    asked.execute("update mainspring.definitions set concurrency = 1 where key = 'risky'")
    job_id = enqueue(asked, "risky")
    call(asked, "approve", job_id)

    assert state(asked, job_id) == ("queued", "limit")


def test_a_rejected_job_that_is_retried_has_to_be_approved(asked):
    job_id = enqueue(asked, "risky")
    call(asked, "reject", job_id, "no")

    call(asked, "retry", job_id)

    assert state(asked, job_id) == ("awaiting_approval", "approval")
    assert call(asked, "approve", job_id) == ["queued"]


def test_an_approved_job_is_retried_as_it_is_without_asking_again(asked):
    job_id = enqueue(asked, "risky")
    call(asked, "approve", job_id)
    call(asked, "cancel", job_id)
    call(asked, "retry", job_id)

    assert state(asked, job_id) == ("queued", None)


def test_an_approval_does_not_cover_another_payload(asked):
    job_id = enqueue(asked, "risky", payload='{"rows": 1}')
    call(asked, "approve", job_id)
    call(asked, "cancel", job_id)

    call(asked, "retry", job_id, payload='{"rows": 1000000}')

    assert state(asked, job_id) == ("awaiting_approval", "approval")


def test_who_comes_by_a_login_of_their_own_cannot_speak_for_others(asked):
    asked.execute("create role mallory login")
    asked.execute("grant usage on schema mainspring to mallory")
    asked.execute("grant execute on function mainspring.approve to mallory")
    job_id = enqueue(asked, "grave")
    asked.execute("set session authorization mallory")
    act_as(asked, "ann")

    with pytest.raises(psycopg.Error, match="mallory may not decide"), asked.transaction():
        asked.execute("select mainspring.approve(%s)", (job_id,))


def test_a_login_that_is_a_member_of_an_approving_role_may_decide(asked):
    asked.execute("create role deciders")
    asked.execute("create role dora login in role deciders")
    asked.execute("grant usage on schema mainspring to dora")
    asked.execute("grant execute on function mainspring.approve to dora")
    insert_definition(asked, "theirs", approvals_needed=1, approvers=["deciders"])
    job_id = enqueue(asked, "theirs")
    asked.execute("set session authorization dora")

    assert asked.execute("select mainspring.approve(%s)", (job_id,)).fetchone() == ("queued",)
