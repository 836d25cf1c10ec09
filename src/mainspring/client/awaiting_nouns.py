"""The nouns of the async client, written by `tools/write_async_client.py`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mainspring.api.models.approvals import ApprovalModel
from mainspring.api.models.base import Page
from mainspring.api.models.definitions import DefinitionModel
from mainspring.api.models.events import EmittedModel, EventModel
from mainspring.api.models.flows import CountModel, FlowJobModel, FlowModel, StartedModel
from mainspring.api.models.jobs import (
    AttemptModel,
    Attempts,
    EnqueuedManyModel,
    EnqueuedModel,
    JobModel,
    StateModel,
    SummaryModel,
)
from mainspring.api.models.limits import LimitModel
from mainspring.api.models.operations import BulkModel
from mainspring.api.models.schedules import (
    FilledModel,
    Filling,
    FireModel,
    Fires,
    ScheduleModel,
    SlotModel,
    TriggeredModel,
)
from mainspring.api.models.streams import WatchedModel
from mainspring.api.models.triggers import RehearsedModel, TriggerModel
from mainspring.client.asking import (
    Ask,
    act,
    create,
    given,
    named,
    new_key,
    operation,
    read_as,
)

if TYPE_CHECKING:
    from mainspring.client.awaiting import AsyncClient


class Noun:
    """The things of one kind."""

    def __init__(self, client: "AsyncClient") -> None:
        self._client = client


class Jobs(Noun):
    """`client.jobs`."""

    async def enqueue(
        self,
        definition: str,
        payload: dict[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> EnqueuedModel:
        """Enqueue a job. A key of its own makes it safe to send again when the answer is lost."""
        body = {"definition": definition, **given(payload=payload, **options)}
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        ask = Ask("POST", "/jobs", body=body, headers=headers, is_safe=True)
        return await self._client.ask(ask, EnqueuedModel)

    async def enqueue_many(
        self, definition: str, payloads: Sequence[dict[str, Any]], **options: Any
    ) -> EnqueuedManyModel:
        """Enqueue jobs of one definition together: all or none."""
        body = {"definition": definition, "payloads": list(payloads), **given(**options)}
        return await self._client.ask(Ask("POST", "/jobs/many", body=body), EnqueuedManyModel)

    def list(self, *, limit: int = 100, **filters: Any) -> AsyncIterator[JobModel]:
        """All jobs that pass, the newest first; `limit` is the size of a page."""
        ask = Ask("GET", "/jobs", {**filters, "limit": limit})
        return self._client.pages(ask, Page[JobModel])

    async def page(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Any
    ) -> Page[JobModel]:
        params = {**filters, "limit": limit, "cursor": cursor}
        return await self._client.ask(Ask("GET", "/jobs", params), Page[JobModel])

    async def get(self, job_id: int) -> JobModel:
        return await self._client.ask(Ask("GET", f"/jobs/{job_id}"), JobModel)

    async def attempts(self, job_id: int) -> Sequence[AttemptModel]:
        """First to last."""
        return (await self._client.ask(Ask("GET", f"/jobs/{job_id}/attempts"), Attempts)).items

    async def cancel(self, job_id: int, reason: str = "") -> StateModel:
        """Canceled at once, or running where it was asked to stop."""
        return await self._client.ask(act(f"/jobs/{job_id}/cancel", {"reason": reason}), StateModel)

    async def retry(self, job_id: int, payload: dict[str, Any] | None = None) -> StateModel:
        """Put a failed, dead-lettered or canceled job back."""
        body = given(payload=payload)
        return await self._client.ask(Ask("POST", f"/jobs/{job_id}/retry", body=body), StateModel)

    async def delete(self, job_id: int) -> None:
        await self._client.do(Ask("DELETE", f"/jobs/{job_id}"))

    async def bulk(self, action: str, *, dry_run: bool = False, **said: Any) -> BulkModel:
        """Cancel, retry or delete all jobs that pass the filters; a dry run counts them."""
        return await self._client.ask(operation(action, said, dry_run=dry_run), BulkModel)

    async def summary(self, *, tenant: str | None = None) -> SummaryModel:
        return await self._client.ask(
            Ask("GET", "/jobs/summary", given(tenant=tenant)), SummaryModel
        )

    async def watch(self, *, limit: int = 50, **filters: Any) -> AsyncIterator[Page[JobModel]]:
        """The first page of a list, whenever it changes."""
        async for name, data in self._client.listen("/jobs/stream", {**filters, "limit": limit}):
            if name == "jobs":
                yield read_as(Page[JobModel], data)

    async def follow(self, job_id: int) -> AsyncIterator[WatchedModel]:
        """The job, whenever it changes, until it has ended."""
        async for name, data in self._client.listen(f"/jobs/{job_id}/stream"):
            if name == "job":
                yield read_as(WatchedModel, data)


class Definitions(Noun):
    """`client.definitions`."""

    def list(self, **filters: Any) -> AsyncIterator[DefinitionModel]:
        return self._client.pages(Ask("GET", "/definitions", filters), Page[DefinitionModel])

    async def get(self, key: str) -> DefinitionModel:
        return await self._client.ask(Ask("GET", f"/definitions/{named(key)}"), DefinitionModel)

    async def create(self, key: str, kind: str, **fields: Any) -> DefinitionModel:
        body = {"key": key, "kind": kind, **fields}
        return await self._client.ask(create("/definitions", body), DefinitionModel)

    async def update(self, key: str, **changes: Any) -> DefinitionModel:
        return await self._client.ask(
            Ask("PATCH", f"/definitions/{named(key)}", body=changes), DefinitionModel
        )

    async def activate(self, key: str) -> DefinitionModel:
        return await self._client.ask(act(f"/definitions/{named(key)}/activate"), DefinitionModel)

    async def deactivate(self, key: str) -> DefinitionModel:
        return await self._client.ask(act(f"/definitions/{named(key)}/deactivate"), DefinitionModel)


class Limits(Noun):
    """`client.limits`."""

    def list(self) -> AsyncIterator[LimitModel]:
        return self._client.pages(Ask("GET", "/limits"), Page[LimitModel])

    async def get(self, name: str) -> LimitModel:
        return await self._client.ask(Ask("GET", f"/limits/{named(name)}"), LimitModel)

    async def set(self, name: str, **fields: Any) -> LimitModel:
        """What is left out is not limited."""
        return await self._client.ask(
            Ask("PUT", f"/limits/{named(name)}", body=given(**fields)), LimitModel
        )

    async def remove(self, name: str) -> None:
        await self._client.do(Ask("DELETE", f"/limits/{named(name)}"))


class Schedules(Noun):
    """`client.schedules`."""

    def list(self, **filters: Any) -> AsyncIterator[ScheduleModel]:
        return self._client.pages(Ask("GET", "/schedules", filters), Page[ScheduleModel])

    async def get(self, name: str) -> ScheduleModel:
        return await self._client.ask(Ask("GET", f"/schedules/{named(name)}"), ScheduleModel)

    async def create(self, name: str, definition: str, **fields: Any) -> ScheduleModel:
        body = {"name": name, "definition": definition, **given(**fields)}
        return await self._client.ask(create("/schedules", body), ScheduleModel)

    async def update(self, name: str, /, **changes: Any) -> ScheduleModel:
        return await self._client.ask(
            Ask("PATCH", f"/schedules/{named(name)}", body=changes), ScheduleModel
        )

    async def delete(self, name: str) -> None:
        await self._client.do(Ask("DELETE", f"/schedules/{named(name)}"))

    async def enable(self, name: str) -> ScheduleModel:
        return await self._client.ask(act(f"/schedules/{named(name)}/enable"), ScheduleModel)

    async def disable(self, name: str, reason: str | None = None) -> ScheduleModel:
        body = given(reason=reason)
        return await self._client.ask(act(f"/schedules/{named(name)}/disable", body), ScheduleModel)

    async def pause(self, name: str, until: datetime | None = None) -> ScheduleModel:
        body = given(until=until)
        return await self._client.ask(act(f"/schedules/{named(name)}/pause", body), ScheduleModel)

    async def resume(self, name: str) -> ScheduleModel:
        return await self._client.ask(act(f"/schedules/{named(name)}/resume"), ScheduleModel)

    async def trigger(self, name: str, *, force: bool = False, wait: float = 0) -> TriggeredModel:
        """Fire it now; `wait` seconds at the most, 30, for a scheduler that has to look first."""
        body = {"force": force, "wait": wait}
        ask = Ask("POST", f"/schedules/{named(name)}/trigger", body=body, patience=wait)
        return await self._client.ask(ask, TriggeredModel)

    async def backfill(
        self, name: str, start: datetime, end: datetime, **options: Any
    ) -> Sequence[FilledModel]:
        """Enqueue the past slots of a range that had no job."""
        body = {"start": start, "end": end, **given(**options)}
        return (
            await self._client.ask(act(f"/schedules/{named(name)}/backfill", body), Filling)
        ).items

    def history(self, name: str, **filters: Any) -> AsyncIterator[SlotModel]:
        """Its slots, the newest first."""
        ask = Ask("GET", f"/schedules/{named(name)}/history", filters)
        return self._client.pages(ask, Page[SlotModel])

    async def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Sequence[FireModel]:
        """Its next slots."""
        ask = Ask("GET", f"/schedules/{named(name)}/preview", given(count=count, after=after))
        return (await self._client.ask(ask, Fires)).items


class Events(Noun):
    """`client.events`."""

    async def emit(
        self,
        name: str,
        context: dict[str, Any] | None = None,
        *,
        correlation_id: str | None = None,
    ) -> EmittedModel:
        """Say that something happened."""
        body = {"name": name, **given(context=context, correlation_id=correlation_id)}
        return await self._client.ask(create("/events", body), EmittedModel)

    def list(self, **filters: Any) -> AsyncIterator[EventModel]:
        """The newest first."""
        return self._client.pages(Ask("GET", "/events", filters), Page[EventModel])

    async def get(self, event_id: int) -> EventModel:
        return await self._client.ask(Ask("GET", f"/events/{event_id}"), EventModel)

    async def replay(self, event_id: int, trigger: str | None = None) -> EventModel:
        """Give it to its triggers once more, or to one of them."""
        body = given(trigger=trigger)
        return await self._client.ask(
            Ask("POST", f"/events/{event_id}/replay", body=body), EventModel
        )


class Triggers(Noun):
    """`client.triggers`."""

    def list(self, **filters: Any) -> AsyncIterator[TriggerModel]:
        """By name."""
        return self._client.pages(Ask("GET", "/triggers", filters), Page[TriggerModel])

    async def get(self, name: str) -> TriggerModel:
        return await self._client.ask(Ask("GET", f"/triggers/{named(name)}"), TriggerModel)

    async def create(
        self, name: str, *, event: str, definition: str, **fields: Any
    ) -> TriggerModel:
        body = {"name": name, "event": event, "definition": definition, **given(**fields)}
        return await self._client.ask(create("/triggers", body), TriggerModel)

    async def update(self, name: str, **changes: Any) -> TriggerModel:
        return await self._client.ask(
            Ask("PATCH", f"/triggers/{named(name)}", body=changes), TriggerModel
        )

    async def delete(self, name: str) -> None:
        await self._client.do(Ask("DELETE", f"/triggers/{named(name)}"))

    async def enable(self, name: str) -> TriggerModel:
        return await self._client.ask(act(f"/triggers/{named(name)}/enable"), TriggerModel)

    async def disable(self, name: str) -> TriggerModel:
        return await self._client.ask(act(f"/triggers/{named(name)}/disable"), TriggerModel)

    async def test(
        self, name: str, context: dict[str, Any] | None = None, *, event: str | None = None
    ) -> dict[str, Any]:
        """The payload that such an event would make."""
        body = given(context=context, event=event)
        return (
            await self._client.ask(act(f"/triggers/{named(name)}/test", body), RehearsedModel)
        ).payload


class Flows(Noun):
    """`client.flows`."""

    async def start(self, name: str, steps: Sequence[Mapping[str, Any]]) -> StartedModel:
        """Enqueue jobs that wait for each other: a step has a name, `step`, and others `after`."""
        return await self._client.ask(
            create("/flows", {"name": name, "steps": steps}), StartedModel
        )

    def list(self, **filters: Any) -> AsyncIterator[FlowModel]:
        """The newest first."""
        return self._client.pages(Ask("GET", "/flows", filters), Page[FlowModel])

    async def get(self, flow_id: int) -> FlowModel:
        return await self._client.ask(Ask("GET", f"/flows/{flow_id}"), FlowModel)

    def jobs(self, flow_id: int, *, limit: int = 100) -> AsyncIterator[FlowJobModel]:
        """In the order they were enqueued; `limit` is the size of a page."""
        ask = Ask("GET", f"/flows/{flow_id}/jobs", {"limit": limit})
        return self._client.pages(ask, Page[FlowJobModel])

    async def cancel(self, flow_id: int, reason: str = "") -> CountModel:
        return await self._client.ask(
            act(f"/flows/{flow_id}/cancel", {"reason": reason}), CountModel
        )

    async def retry(self, flow_id: int) -> CountModel:
        return await self._client.ask(Ask("POST", f"/flows/{flow_id}/retry"), CountModel)


class Approvals(Noun):
    """`client.approvals`."""

    async def list(self, **filters: Any) -> AsyncIterator[ApprovalModel]:
        """Jobs that await approval, the longest waiting first."""
        return self._client.pages(Ask("GET", "/approvals", filters), Page[ApprovalModel])

    async def get(self, job_id: int) -> ApprovalModel:
        return await self._client.ask(Ask("GET", f"/approvals/{job_id}"), ApprovalModel)

    async def approve(self, job_id: int, reason: str = "", *, by: str | None = None) -> StateModel:
        """An operator may decide for someone else."""
        body = {"reason": reason, **given(by=by)}
        return await self._client.ask(act(f"/jobs/{job_id}/approve", body), StateModel)

    async def reject(self, job_id: int, reason: str, *, by: str | None = None) -> StateModel:
        body = {"reason": reason, **given(by=by)}
        return await self._client.ask(act(f"/jobs/{job_id}/reject", body), StateModel)
