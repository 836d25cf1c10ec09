"""The enqueue methods of `Mainspring`; each runs a plan of its enqueuer."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mainspring.app.job_functions import (
    JobFunction,
    JobHandle,
    checked,
    given_of,
    make_options,
    without_connection,
)
from mainspring.app.namespaces import App
from mainspring.db.plans import Plan, arun, run
from mainspring.domain.jobs.options import EnqueueOptions, ensure_payload
from mainspring.domain.types import DEFAULT_TENANT, JobId, TenantId
from mainspring.services.enqueueing import DEFAULT_OPTIONS

if TYPE_CHECKING:
    from mainspring.app.flows import Flow


class EnqueueMethods(App):
    """The part of `Mainspring` that enqueues jobs."""

    def enqueue(self, key: str, payload: dict[str, Any], **options: Any) -> JobHandle:
        """Enqueue by key, for definitions whose code is elsewhere; raises UnknownDefinition if
        nobody has stored one with this key."""
        connection = options.pop("connection", None)
        return self.enqueue_payload(key, payload, make_options(options), connection=connection)

    async def aenqueue(self, key: str, payload: dict[str, Any], **options: Any) -> JobHandle:
        """Async version of `enqueue`."""
        connection = options.pop("connection", None)
        return await self.aenqueue_payload(
            key, payload, make_options(options), connection=connection
        )

    def enqueue_many(
        self,
        job: JobFunction[..., Any] | str,
        payloads: Iterable[dict[str, Any]],
        *,
        dedupe_keys: Sequence[str | None] | None = None,
        connection: object = None,
        **options: Any,
    ) -> list[JobId]:
        """Enqueue one job per payload in one transaction; returns the ids. Payloads whose dedupe
        key is taken are left out."""
        plan = self._plan_many(
            job, payloads, options=options, dedupe_keys=dedupe_keys, connection=connection
        )
        return run(plan, self.database)

    async def aenqueue_many(
        self,
        job: JobFunction[..., Any] | str,
        payloads: Iterable[dict[str, Any]],
        *,
        dedupe_keys: Sequence[str | None] | None = None,
        connection: object = None,
        **options: Any,
    ) -> list[JobId]:
        """Async version of `enqueue_many`."""
        plan = self._plan_many(
            job, payloads, options=options, dedupe_keys=dedupe_keys, connection=connection
        )
        return await arun(plan, self.database)

    def _plan_many(
        self,
        job: JobFunction[..., Any] | str,
        payloads: Iterable[dict[str, Any]],
        *,
        options: dict[str, Any],
        dedupe_keys: Sequence[str | None] | None,
        connection: object,
    ) -> Plan[list[JobId]]:
        given, chosen = list(payloads), given_of(job)
        if isinstance(job, JobFunction):
            for payload in given:
                if not (isinstance(payload, dict) and job.signature.fits(payload)):
                    ensure_payload(payload)
                    job.signature.payload_of((), payload)
        return self.enqueuer.enqueue_many(
            job.key if isinstance(job, JobFunction) else job,
            given,
            make_options({**without_connection(chosen), **options}),
            dedupe_keys=dedupe_keys,
            connection=chosen.get("connection") if connection is None else connection,
        )

    def enqueue_payload(
        self,
        key: str,
        payload: object,
        options: EnqueueOptions = DEFAULT_OPTIONS,
        *,
        connection: object = None,
    ) -> JobHandle:
        """Enqueue with options that have been checked."""
        plan = self.enqueuer.enqueue(key, payload, options, connection=connection)
        job_id, is_new, _ = run(plan, self.database)
        return JobHandle(job_id, is_new, options.tenant_id, self)

    async def aenqueue_payload(
        self,
        key: str,
        payload: object,
        options: EnqueueOptions = DEFAULT_OPTIONS,
        *,
        connection: object = None,
    ) -> JobHandle:
        """Async version of `enqueue_payload`."""
        plan = self.enqueuer.enqueue(key, payload, options, connection=connection)
        job_id, is_new, _ = await arun(plan, self.database)
        return JobHandle(job_id, is_new, options.tenant_id, self)

    def enqueue_followup(self, job: Any, payload: dict[str, Any], **options: Any) -> JobHandle:
        """Enqueue from within a handler; see `Context.enqueue`."""
        return self.enqueue(*checked(job, payload), **_of_followup(job, options))

    async def aenqueue_followup(
        self, job: Any, payload: dict[str, Any], **options: Any
    ) -> JobHandle:
        """Async version of `enqueue_followup`."""
        return await self.aenqueue(*checked(job, payload), **_of_followup(job, options))

    def flow(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> "Flow":
        """Start to build a flow; nothing is enqueued before its `enqueue`."""
        from mainspring.app.flows import Flow  # noqa: PLC0415 - few apps use flows

        return Flow(self, name, TenantId(tenant_id))


def _of_followup(job: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of the running job, and those that were chosen with the follow-up. Only on a
    connection of ours can it be said to come from the job."""
    given = given_of(job)
    if given.get("connection") is not None:
        options = {name: value for name, value in options.items() if name != "created_by"}
    return {**options, **given}
