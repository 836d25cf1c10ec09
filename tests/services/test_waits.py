"""Limits, approvals and flows in Python, without a worker."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring import JobState, Mainspring
from mainspring.db.plans import arun
from mainspring.domain.errors import (
    ApprovalNotFound,
    FlowNotFound,
    InvalidDefinition,
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    LimitNotFound,
    NotAnApprover,
    UnknownDefinition,
)
from mainspring.services.definitions import DeclaredDefinitions

WAITING: dict[str, Any] = {
    "concurrency": 3,
    "key_concurrency": 1,
    "rate": "10/minute",
    "burst": 2,
    "limit_by": "to.host",
    "approvals_needed": 2,
    "approval_expiry": timedelta(days=1),
    "approvers": ("ann", "bob"),
}


# Definitions


async def test_a_definition_keeps_what_its_jobs_wait_for(app: Mainspring):
    @app.job(**WAITING)
    async def careful(to: dict[str, str]) -> None:
        """Does nothing."""

    await app.aregister_definitions()
    stored = (await app.definitions.aget("careful")).definition

    assert {name: getattr(stored, name) for name in WAITING} == WAITING


async def test_declaring_it_again_changes_nothing(app: Mainspring):
    @app.job(**WAITING)
    async def careful(to: dict[str, str]) -> None:
        """Does nothing."""

    await app.aregister_definitions()
    before = await app.definitions.aget("careful")
    await arun(DeclaredDefinitions(app.handlers).register(), app.database)

    assert await app.definitions.aget("careful") == before


def test_a_mistyped_limit_is_refused_where_it_is_declared(app: Mainspring):
    with pytest.raises(InvalidDefinition, match="there is no option concurency; did you mean"):

        @app.job(concurency=1)  # type: ignore[call-overload]
        async def work() -> None:
            """Does nothing."""


# Limits


async def test_a_limit_is_set_changed_and_removed(app: Mainspring):
    await app.limits.aset("openai", rate="60/minute")
    state = await app.limits.aset("openai", concurrency=5, by="ann")
    assert (state.limit.concurrency, state.limit.rate) == (5, None)
    assert [each.name for each in await app.limits.alist()] == ["openai"]

    await app.limits.aremove("openai")

    assert await app.limits.alist() == []


async def test_a_limit_that_is_not_there_is_suggested(app: Mainspring):
    await app.limits.aset("openai", concurrency=1)

    with pytest.raises(LimitNotFound, match="there is no limit 'opena'; did you mean 'openai'"):
        await app.limits.aget("opena")
    with pytest.raises(LimitNotFound, match="did you mean 'openai'"):
        await app.limits.aremove("opena")


async def test_a_limit_shows_what_waits_for_it(app: Mainspring):
    await app.limits.aset("openai", concurrency=1)

    @app.job(limit="openai")
    async def embed(number: int) -> None:
        """Does nothing."""

    await app.aenqueue_many(embed, [{"number": n} for n in range(300)])

    state = await app.limits.aget("openai")
    assert (state.running, state.waiting) == (0, 300)


def test_limits_can_be_set_from_plain_code(app: Mainspring):
    app.limits.set("openai", concurrency=1)

    assert app.limits.get("openai").limit.concurrency == 1


# Approvals


async def test_what_awaits_approval_is_listed_with_who_said_what(app: Mainspring):
    handle = await app.aenqueue("send", {"to": "bob"}, approvals_needed=2)
    state = await app.approvals.aapprove(handle.id, by="ann", reason="fine by me")
    assert state is JobState.AWAITING_APPROVAL

    (approval,) = await app.approvals.alist()

    assert (approval.job_id, approval.payload, approval.missing) == (handle.id, {"to": "bob"}, 1)
    assert [(vote.actor, vote.reason) for vote in approval.votes] == [("ann", "fine by me")]
    assert await app.approvals.aapprove(handle.id, by="bob") is JobState.QUEUED
    assert await app.approvals.alist() == []


async def test_a_rejection_says_why(app: Mainspring):
    handle = await app.aenqueue("send", {}, approvals_needed=1)

    await app.approvals.areject(handle.id, by="ann", reason="no need")

    assert (await handle.ajob()).last_error == "rejected by ann: no need"
    assert (await app.approvals.aget(handle.id)).decision == "rejected"


async def test_a_rejection_without_a_reason_is_refused(app: Mainspring):
    handle = await app.aenqueue("send", {}, approvals_needed=1)

    with pytest.raises(InvalidOption, match="reason must not be empty"):
        await app.approvals.areject(handle.id, reason="")


async def test_only_approvers_approve(app: Mainspring):
    @app.job(approvals_needed=1, approvers=["ann"])
    async def risky() -> None:
        """Does nothing."""

    handle = await risky.aenqueue()

    with pytest.raises(NotAnApprover, match=f"eve may not decide on job {handle.id}; ann may"):
        await app.approvals.aapprove(handle.id, by="eve")


async def test_a_job_that_never_asked_has_no_approval(app: Mainspring):
    handle = await app.aenqueue("send", {})

    with pytest.raises(ApprovalNotFound, match=f"job {handle.id} did not require approval"):
        await app.approvals.aget(handle.id)


async def test_the_whole_batch_waits_for_approval(app: Mainspring):
    job_ids = await app.aenqueue_many("send", [{} for _ in range(250)], approvals_needed=1)

    assert [each.job_id for each in await app.approvals.alist(limit=1000)] == job_ids


# Dependencies and flows


async def test_a_job_comes_after_handles_and_numbers(app: Mainspring):
    first, second = await app.aenqueue("send", {}), await app.aenqueue("send", {})

    child = await app.aenqueue("send", {}, after=[first, second.id])

    assert (await child.ajob()).state is JobState.BLOCKED


@pytest.mark.parametrize("after", [5, ["5"], [True], [None]])
async def test_what_is_no_list_of_jobs_is_refused(app: Mainspring, after: object):
    with pytest.raises(InvalidOption, match="after must be a list of jobs"):
        await app.aenqueue("send", {}, after=after)


async def test_a_job_cannot_come_after_one_that_is_not_there(app: Mainspring):
    with pytest.raises(JobNotFound, match="there is no job 999999999"):
        await app.aenqueue("send", {}, after=[999_999_999])

    assert await app.jobs.alist() == []


async def test_a_batch_cannot_come_after_jobs(app: Mainspring):
    with pytest.raises(InvalidOption, match="after applies to a single job; build a flow"):
        await app.aenqueue_many("send", [{}], after=[1])


async def test_a_flow_is_enqueued_whole_with_ten_thousand_jobs(app: Mainspring):
    flow = app.flow("wide")
    top = flow.add("send", {"n": 0})
    sides = [flow.add("send", {"n": n}, after=[top]) for n in range(9_998)]
    flow.add("send", {"n": -1}, after=sides)

    handle = await flow.aenqueue()

    summary = await handle.aget()
    assert (summary.jobs, summary.counts[JobState.BLOCKED]) == (10_000, 9_999)
    assert len(await app.flows.ajobs(handle.id, limit=10_000)) == 10_000


async def test_a_flow_commits_with_the_transaction_it_is_given(app: Mainspring):
    flow = app.flow("pair")
    flow.add("send", {}, after=[flow.add("send", {})])
    pool = await app.database.async_pool()
    async with pool.connection() as connection, connection.transaction(force_rollback=True):
        await flow.aenqueue(connection=connection)

    assert await app.flows.alist() == []
    assert await app.jobs.alist() == []


async def test_a_flow_with_a_wrong_step_is_refused_whole(app: Mainspring):
    flow = app.flow("pair")
    flow.add("nope", {}, after=[flow.add("send", {})])

    with pytest.raises(UnknownDefinition, match="unknown definition 'nope'"):
        await flow.aenqueue()

    assert await app.jobs.alist() == []


async def test_a_step_is_checked_against_the_schema(app: Mainspring):
    @app.job(arg_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    async def strict(n: int) -> None:
        """Does nothing."""

    flow = app.flow("one")
    flow.add(strict, n="seven")

    with pytest.raises(InvalidPayload, match="n"):
        await flow.aenqueue()


async def test_a_step_takes_arguments_and_options_by_name(app: Mainspring):
    @app.job
    async def work(number: int, queue: str) -> None:
        """Has an argument that is called like an option."""

    flow = app.flow("one")
    step = flow.add(work, number=1, queue="an argument", priority=3, step="only")

    assert step.payload == {"number": 1, "queue": "an argument"}
    assert (step.options.priority, step.name) == (3, "only")


async def test_a_step_with_an_option_that_makes_no_sense_is_refused(app: Mainspring):
    with pytest.raises(InvalidOption, match="dedupe_key is not a step option"):
        app.flow("one").add("send", {}, dedupe_key="k")


@pytest.mark.parametrize("after", [3, ["x"]])
def test_a_step_comes_after_a_list_of_steps(app: Mainspring, after: object):
    with pytest.raises(InvalidOption, match="after must"):
        app.flow("one").add("send", {}, after=after)  # type: ignore[arg-type]


async def test_a_flow_that_is_not_there_is_said_so(app: Mainspring):
    for ask in (app.flows.aget, app.flows.acancel, app.flows.aretry):
        with pytest.raises(FlowNotFound, match="there is no flow 12345"):
            await ask(12345)


def test_flows_can_be_built_from_plain_code(app: Mainspring):
    flow = app.flow("pair")
    flow.chain(flow.add("send", {}), flow.add("send", {}))

    handle = flow.enqueue()

    assert handle.get().jobs == 2
    assert [job.state for job in app.flows.jobs(handle.id)] == ["queued", "blocked"]
