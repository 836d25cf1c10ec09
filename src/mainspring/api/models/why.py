"""Why a job does not run, in responses."""

from datetime import datetime

from mainspring.api.models.base import Answer, IdOut, Object
from mainspring.domain.types import JobState, WaitsFor
from mainspring.domain.why import Estimate, Reason, Why


class WhyReasonModel(Answer):
    """One reason for the state of a job, and what resolves it."""

    code: str
    sentence: str
    since: datetime | None
    until: datetime | None
    facts: Object
    fix: str | None

    @classmethod
    def of(cls, reason: Reason) -> "WhyReasonModel":
        return cls.model_construct(
            code=reason.code,
            sentence=reason.sentence,
            since=reason.since,
            until=reason.until,
            facts=dict(reason.facts),
            fix=reason.fix,
        )


class WhyEstimateModel(Answer):
    """When a job may start, and what that is based on."""

    at: datetime
    basis: str

    @classmethod
    def of(cls, estimate: Estimate) -> "WhyEstimateModel":
        return cls.model_construct(at=estimate.at, basis=estimate.basis)


class WhyModel(Answer):
    """The state of a job and the reasons for it, the first of which holds it up."""

    job_id: IdOut
    state: JobState | None
    waits_for: WaitsFor | None
    reasons: list[WhyReasonModel]
    estimate: WhyEstimateModel | None

    @classmethod
    def of(cls, why: Why) -> "WhyModel":
        return cls.model_construct(
            job_id=why.job_id,
            state=why.state,
            waits_for=why.waits_for,
            reasons=[WhyReasonModel.of(reason) for reason in why.reasons],
            estimate=None if why.estimate is None else WhyEstimateModel.of(why.estimate),
        )
