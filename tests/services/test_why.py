"""`app.jobs.why`: what SQL answers, with the types of Python."""

from datetime import UTC, timedelta

import pytest

from mainspring import JobState, Mainspring
from mainspring.domain.errors import JobNotFound
from mainspring.domain.types import WaitsFor


async def test_a_delayed_job_says_until_when(app: Mainspring):
    handle = await app.aenqueue("send", {}, delay=timedelta(hours=1))

    why = await app.jobs.awhy(handle.id)

    reason, nobody = why.reasons
    assert (why.job_id, why.state, why.waits_for) == (handle.id, JobState.QUEUED, WaitsFor.TIME)
    assert (reason.code, nobody.code) == ("delay", "nobody_serves")
    assert reason.until == (await handle.ajob()).scheduled_for.astimezone(UTC)
    assert why.estimate is not None
    assert why.estimate.at == reason.until


def test_an_id_that_no_job_has_has_no_state(app: Mainspring):
    why = app.jobs.why(1)

    assert (why.state, why.waits_for, why.estimate) == (None, None, None)
    assert [reason.code for reason in why.reasons] == ["unknown_id"]


async def test_a_job_of_another_tenant_is_not_explained(app: Mainspring):
    handle = await app.aenqueue("send", {})

    with pytest.raises(JobNotFound):
        await app.jobs.awhy(handle.id, tenant_id="acme")
