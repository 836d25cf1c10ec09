"""The statement that explains the state of a job."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.types import JobId, JobState, TenantId, WaitsFor
from mainspring.domain.why import Estimate, Reason, Why

_STATEMENTS = load("why")


async def why(session: Session, job_id: JobId, tenant_id: TenantId) -> Why:
    params = {"job_id": job_id, "tenant_id": tenant_id}
    ((answer,),) = await fetch_all(session, _STATEMENTS["why"].sql, params)
    state, waits_for, estimate = answer["state"], answer["waits_for"], answer["estimate"]
    return Why(
        JobId(int(answer["job_id"])),
        None if state is None else JobState(state),
        None if waits_for is None else WaitsFor(waits_for),
        tuple(_reason(each) for each in answer["reasons"]),
        None if estimate is None else Estimate(_instant(estimate["at"]), estimate["basis"]),
    )


def _reason(facts: Mapping[str, Any]) -> Reason:
    since, until = (facts[name] and _instant(facts[name]) for name in ("since", "until"))
    return Reason(facts["code"], facts["sentence"], since, until, facts["facts"], facts["fix"])


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
