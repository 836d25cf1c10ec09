"""Flows: jobs that wait for each other, enqueued together.

flow = app.flow("nightly")
pages = [flow.add(fetch, url=url) for url in urls]
index = flow.add(build_index, after=pages)
run = await flow.aenqueue()
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mainspring.app import ids
from mainspring.app.job_functions import (
    JobFunction,
    JobHandle,
    given_of,
    make_options,
    option_names,
)
from mainspring.app.namespaces import App, Namespace, blocking
from mainspring.db.plans import Plan, arun, run
from mainspring.domain.errors import InvalidOption
from mainspring.domain.filters import Several
from mainspring.domain.flows import FlowJob, FlowSummary, Step, ensure_step_options
from mainspring.domain.jobs.options import ensure_payload
from mainspring.domain.types import DEFAULT_TENANT, JobId, TenantId
from mainspring.services import flows as services
from mainspring.services.enqueueing import EnqueuedFlow

# Inside the class `list` is one of its methods.
Summaries = list[FlowSummary]
Jobs = list[FlowJob]


@dataclass(frozen=True, slots=True)
class FlowHandle:
    """A flow that was enqueued; `jobs` are its jobs by step."""

    id: int
    tenant_id: TenantId
    jobs: dict[Step, JobHandle]
    _flows: "Flows" = field(repr=False)

    async def aget(self) -> FlowSummary:
        """The flow with the number of its jobs in each state, as it is now."""
        return await self._flows.aget(self.id, tenant_id=self.tenant_id)

    def get(self) -> FlowSummary:
        """Blocking version of `aget`."""
        return self._flows.get(self.id, tenant_id=self.tenant_id)


class Flow:
    """A flow that is being built, by `app.flow(name)`."""

    def __init__(self, app: App, name: str, tenant_id: TenantId) -> None:
        self.name, self.tenant_id = name, tenant_id
        self.steps: list[Step] = []
        self._app = app

    def add(
        self,
        job: "JobFunction[..., Any] | str",
        payload: dict[str, Any] | None = None,
        /,
        *,
        after: "Sequence[Step | JobHandle | int]" = (),
        step: str = "",
        on_parent_failure: str = "cancel",
        **given: Any,
    ) -> Step:
        """Add a job that runs when those it comes after have succeeded. Pass the job's arguments
        and enqueue options by name."""
        if payload is not None:
            ensure_payload(payload)
        names = job.signature.names if isinstance(job, JobFunction) else (payload or {}).keys()
        options = {name: given.pop(name) for name in given.keys() & option_names() - set(names)}
        options = {**given_of(job), **options}
        ensure_step_options(options)
        arguments = {**(payload or {}), **given}
        made = Step(
            job.key if isinstance(job, JobFunction) else job,
            job.signature.payload_of((), arguments) if isinstance(job, JobFunction) else arguments,
            make_options(options),
            name=step,
            on_parent_failure=on_parent_failure,
            parents=_parents(after),
        )
        self.steps.append(made)
        return made

    def chain(self, *steps: Step) -> Step:
        """Run the steps one after the other; returns the last."""
        for earlier, later in pairwise(steps):
            later.after(earlier)
        return steps[-1]

    async def aenqueue(self, *, connection: object = None) -> FlowHandle:
        """Enqueue all jobs in one transaction: the connection's, or one of its own."""
        return self._handle(await arun(self._plan(connection), self._app.database))

    def enqueue(self, *, connection: object = None) -> FlowHandle:
        """Blocking version of `aenqueue`."""
        return self._handle(run(self._plan(connection), self._app.database))

    def _plan(self, connection: object) -> Plan[EnqueuedFlow]:
        return self._app.enqueuer.enqueue_flow(
            self.name, self.steps, self.tenant_id, connection=connection
        )

    def _handle(self, enqueued: EnqueuedFlow) -> FlowHandle:
        jobs = {
            step: JobHandle(job_id, True, self.tenant_id, self._app)
            for step, job_id in enqueued.job_ids.items()
        }
        return FlowHandle(enqueued.flow_id, self.tenant_id, jobs, Flows(self._app))


class Flows(Namespace):
    """The enqueued flows of an app: `app.flows`."""

    async def aget(self, flow_id: int, /, *, tenant_id: str = DEFAULT_TENANT) -> FlowSummary:
        """One flow with the number of its jobs in each state; raises FlowNotFound."""
        return await services.get(
            self._app.database, TenantId(tenant_id), ids.number("flow_id", flow_id)
        )

    async def alist(
        self,
        *,
        name: Several[str] = None,
        tenant_id: str = DEFAULT_TENANT,
        before: int | None = None,
        limit: int = 50,
    ) -> Summaries:
        """Flows, newest first; pass the last id as `before` for the next page."""
        return await services.list_flows(
            self._app.database, TenantId(tenant_id), name=name, before=before, limit=limit
        )

    async def ajobs(
        self,
        flow_id: int,
        /,
        *,
        tenant_id: str = DEFAULT_TENANT,
        after: int | None = None,
        limit: int = 1000,
    ) -> Jobs:
        """The jobs of a flow in order; pass the last id as `after` for the next page."""
        start = None if after is None else JobId(ids.number("after", after))
        return await services.jobs_of(
            self._app.database,
            TenantId(tenant_id),
            ids.number("flow_id", flow_id),
            after=start,
            limit=limit,
        )

    async def acancel(
        self,
        flow_id: int,
        /,
        *,
        reason: str = "its flow was canceled",
        tenant_id: str = DEFAULT_TENANT,
    ) -> int:
        """Cancel the live jobs of a flow; returns how many there were."""
        return await services.cancel(
            self._app.database, TenantId(tenant_id), ids.number("flow_id", flow_id), reason=reason
        )

    async def aretry(self, flow_id: int, /, *, tenant_id: str = DEFAULT_TENANT) -> int:
        """Retry the failed and canceled jobs of a flow; returns how many there were."""
        return await services.retry(
            self._app.database, TenantId(tenant_id), ids.number("flow_id", flow_id)
        )

    get = blocking(aget)
    list = blocking(alist)
    jobs = blocking(ajobs)
    cancel = blocking(acancel)
    retry = blocking(aretry)


def _parents(given: "Sequence[Step | JobHandle | int]") -> "list[Step | JobId]":
    if isinstance(given, Step | JobHandle | int):
        raise InvalidOption("after", "must be a list of steps or jobs")
    parents: list[Step | JobId] = []
    for each in given:
        if isinstance(each, Step):
            parents.append(each)
        elif isinstance(each, JobHandle):
            parents.append(each.id)
        elif isinstance(each, int) and not isinstance(each, bool):
            parents.append(JobId(each))
        else:
            raise InvalidOption("after", f"must contain steps or jobs, not {type(each).__name__}")
    return parents
