"""The things that a client has: jobs, schedules and the like, each a small class."""

from collections.abc import Iterator, Mapping, Sequence
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
    from mainspring.client.blocking import Client


class Noun:
    """The things of one kind."""

    def __init__(self, client: "Client") -> None:
        self._client = client


class Jobs(Noun):
    """`client.jobs`."""

    def enqueue(
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
        return self._client.ask(ask, EnqueuedModel)

    def enqueue_many(
        self, definition: str, payloads: Sequence[dict[str, Any]], **options: Any
    ) -> EnqueuedManyModel:
        """Enqueue jobs of one definition together: all or none."""
        body = {"definition": definition, "payloads": list(payloads), **given(**options)}
        return self._client.ask(Ask("POST", "/jobs/many", body=body), EnqueuedManyModel)

    def list(self, *, limit: int = 100, **filters: Any) -> Iterator[JobModel]:
        """All jobs that pass, the newest first; `limit` is the size of a page."""
        ask = Ask("GET", "/jobs", {**filters, "limit": limit})
        return self._client.pages(ask, Page[JobModel])

    def page(self, *, limit: int = 50, cursor: str | None = None, **filters: Any) -> Page[JobModel]:
        params = {**filters, "limit": limit, "cursor": cursor}
        return self._client.ask(Ask("GET", "/jobs", params), Page[JobModel])

    def get(self, job_id: int) -> JobModel:
        return self._client.ask(Ask("GET", f"/jobs/{job_id}"), JobModel)

    def attempts(self, job_id: int) -> Sequence[AttemptModel]:
        """First to last."""
        return self._client.ask(Ask("GET", f"/jobs/{job_id}/attempts"), Attempts).items

    def cancel(self, job_id: int, reason: str = "") -> StateModel:
        """Canceled at once, or running where it was asked to stop."""
        return self._client.ask(act(f"/jobs/{job_id}/cancel", {"reason": reason}), StateModel)

    def retry(self, job_id: int, payload: dict[str, Any] | None = None) -> StateModel:
        """Put a failed, dead-lettered or canceled job back."""
        body = given(payload=payload)
        return self._client.ask(Ask("POST", f"/jobs/{job_id}/retry", body=body), StateModel)

    def delete(self, job_id: int) -> None:
        self._client.do(Ask("DELETE", f"/jobs/{job_id}"))

    def bulk(self, action: str, *, dry_run: bool = False, **said: Any) -> BulkModel:
        """Cancel, retry or delete all jobs that pass the filters; a dry run counts them."""
        return self._client.ask(operation(action, said, dry_run=dry_run), BulkModel)

    def summary(self, *, tenant: str | None = None) -> SummaryModel:
        return self._client.ask(Ask("GET", "/jobs/summary", given(tenant=tenant)), SummaryModel)

    def watch(self, *, limit: int = 50, **filters: Any) -> Iterator[Page[JobModel]]:
        """The first page of a list, whenever it changes."""
        for name, data in self._client.listen("/jobs/stream", {**filters, "limit": limit}):
            if name == "jobs":
                yield read_as(Page[JobModel], data)

    def follow(self, job_id: int) -> Iterator[WatchedModel]:
        """The job, whenever it changes, until it has ended."""
        for name, data in self._client.listen(f"/jobs/{job_id}/stream"):
            if name == "job":
                yield read_as(WatchedModel, data)


class Definitions(Noun):
    """`client.definitions`."""

    def list(self, **filters: Any) -> Iterator[DefinitionModel]:
        return self._client.pages(Ask("GET", "/definitions", filters), Page[DefinitionModel])

    def get(self, key: str) -> DefinitionModel:
        return self._client.ask(Ask("GET", f"/definitions/{named(key)}"), DefinitionModel)

    def create(self, key: str, kind: str, **fields: Any) -> DefinitionModel:
        body = {"key": key, "kind": kind, **fields}
        return self._client.ask(create("/definitions", body), DefinitionModel)

    def update(self, key: str, **changes: Any) -> DefinitionModel:
        return self._client.ask(
            Ask("PATCH", f"/definitions/{named(key)}", body=changes), DefinitionModel
        )

    def activate(self, key: str) -> DefinitionModel:
        return self._client.ask(act(f"/definitions/{named(key)}/activate"), DefinitionModel)

    def deactivate(self, key: str) -> DefinitionModel:
        return self._client.ask(act(f"/definitions/{named(key)}/deactivate"), DefinitionModel)


class Limits(Noun):
    """`client.limits`."""

    def list(self) -> Iterator[LimitModel]:
        return self._client.pages(Ask("GET", "/limits"), Page[LimitModel])

    def get(self, name: str) -> LimitModel:
        return self._client.ask(Ask("GET", f"/limits/{named(name)}"), LimitModel)

    def set(self, name: str, **fields: Any) -> LimitModel:
        """What is left out is not limited."""
        return self._client.ask(
            Ask("PUT", f"/limits/{named(name)}", body=given(**fields)), LimitModel
        )

    def remove(self, name: str) -> None:
        self._client.do(Ask("DELETE", f"/limits/{named(name)}"))


class Schedules(Noun):
    """`client.schedules`."""

    def list(self, **filters: Any) -> Iterator[ScheduleModel]:
        return self._client.pages(Ask("GET", "/schedules", filters), Page[ScheduleModel])

    def get(self, name: str) -> ScheduleModel:
        return self._client.ask(Ask("GET", f"/schedules/{named(name)}"), ScheduleModel)

    def create(self, name: str, definition: str, **fields: Any) -> ScheduleModel:
        body = {"name": name, "definition": definition, **given(**fields)}
        return self._client.ask(create("/schedules", body), ScheduleModel)

    def update(self, name: str, /, **changes: Any) -> ScheduleModel:
        return self._client.ask(
            Ask("PATCH", f"/schedules/{named(name)}", body=changes), ScheduleModel
        )

    def delete(self, name: str) -> None:
        self._client.do(Ask("DELETE", f"/schedules/{named(name)}"))

    def enable(self, name: str) -> ScheduleModel:
        return self._client.ask(act(f"/schedules/{named(name)}/enable"), ScheduleModel)

    def disable(self, name: str, reason: str | None = None) -> ScheduleModel:
        body = given(reason=reason)
        return self._client.ask(act(f"/schedules/{named(name)}/disable", body), ScheduleModel)

    def pause(self, name: str, until: datetime | None = None) -> ScheduleModel:
        body = given(until=until)
        return self._client.ask(act(f"/schedules/{named(name)}/pause", body), ScheduleModel)

    def resume(self, name: str) -> ScheduleModel:
        return self._client.ask(act(f"/schedules/{named(name)}/resume"), ScheduleModel)

    def trigger(self, name: str, *, force: bool = False, wait: float = 0) -> TriggeredModel:
        """Fire it now; `wait` seconds at the most, 30, for a scheduler that has to look first."""
        body = {"force": force, "wait": wait}
        ask = Ask("POST", f"/schedules/{named(name)}/trigger", body=body, patience=wait)
        return self._client.ask(ask, TriggeredModel)

    def backfill(
        self, name: str, start: datetime, end: datetime, **options: Any
    ) -> Sequence[FilledModel]:
        """Enqueue the past slots of a range that had no job."""
        body = {"start": start, "end": end, **given(**options)}
        return self._client.ask(act(f"/schedules/{named(name)}/backfill", body), Filling).items

    def history(self, name: str, **filters: Any) -> Iterator[SlotModel]:
        """Its slots, the newest first."""
        ask = Ask("GET", f"/schedules/{named(name)}/history", filters)
        return self._client.pages(ask, Page[SlotModel])

    def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Sequence[FireModel]:
        """Its next slots."""
        ask = Ask("GET", f"/schedules/{named(name)}/preview", given(count=count, after=after))
        return self._client.ask(ask, Fires).items


class Events(Noun):
    """`client.events`."""

    def emit(
        self,
        name: str,
        context: dict[str, Any] | None = None,
        *,
        correlation_id: str | None = None,
    ) -> EmittedModel:
        """Say that something happened."""
        body = {"name": name, **given(context=context, correlation_id=correlation_id)}
        return self._client.ask(create("/events", body), EmittedModel)

    def list(self, **filters: Any) -> Iterator[EventModel]:
        """The newest first."""
        return self._client.pages(Ask("GET", "/events", filters), Page[EventModel])

    def get(self, event_id: int) -> EventModel:
        return self._client.ask(Ask("GET", f"/events/{event_id}"), EventModel)

    def replay(self, event_id: int, trigger: str | None = None) -> EventModel:
        """Give it to its triggers once more, or to one of them."""
        body = given(trigger=trigger)
        return self._client.ask(Ask("POST", f"/events/{event_id}/replay", body=body), EventModel)


class Triggers(Noun):
    """`client.triggers`."""

    def list(self, **filters: Any) -> Iterator[TriggerModel]:
        """By name."""
        return self._client.pages(Ask("GET", "/triggers", filters), Page[TriggerModel])

    def get(self, name: str) -> TriggerModel:
        return self._client.ask(Ask("GET", f"/triggers/{named(name)}"), TriggerModel)

    def create(self, name: str, *, event: str, definition: str, **fields: Any) -> TriggerModel:
        body = {"name": name, "event": event, "definition": definition, **given(**fields)}
        return self._client.ask(create("/triggers", body), TriggerModel)

    def update(self, name: str, **changes: Any) -> TriggerModel:
        return self._client.ask(
            Ask("PATCH", f"/triggers/{named(name)}", body=changes), TriggerModel
        )

    def delete(self, name: str) -> None:
        self._client.do(Ask("DELETE", f"/triggers/{named(name)}"))

    def enable(self, name: str) -> TriggerModel:
        return self._client.ask(act(f"/triggers/{named(name)}/enable"), TriggerModel)

    def disable(self, name: str) -> TriggerModel:
        return self._client.ask(act(f"/triggers/{named(name)}/disable"), TriggerModel)

    def test(
        self, name: str, context: dict[str, Any] | None = None, *, event: str | None = None
    ) -> dict[str, Any]:
        """The payload that such an event would make."""
        body = given(context=context, event=event)
        return self._client.ask(act(f"/triggers/{named(name)}/test", body), RehearsedModel).payload


class Flows(Noun):
    """`client.flows`."""

    def start(self, name: str, steps: Sequence[Mapping[str, Any]]) -> StartedModel:
        """Enqueue jobs that wait for each other: a step has a name, `step`, and others `after`."""
        return self._client.ask(create("/flows", {"name": name, "steps": steps}), StartedModel)

    def list(self, **filters: Any) -> Iterator[FlowModel]:
        """The newest first."""
        return self._client.pages(Ask("GET", "/flows", filters), Page[FlowModel])

    def get(self, flow_id: int) -> FlowModel:
        return self._client.ask(Ask("GET", f"/flows/{flow_id}"), FlowModel)

    def jobs(self, flow_id: int, *, limit: int = 100) -> Iterator[FlowJobModel]:
        """In the order they were enqueued; `limit` is the size of a page."""
        ask = Ask("GET", f"/flows/{flow_id}/jobs", {"limit": limit})
        return self._client.pages(ask, Page[FlowJobModel])

    def cancel(self, flow_id: int, reason: str = "") -> CountModel:
        return self._client.ask(act(f"/flows/{flow_id}/cancel", {"reason": reason}), CountModel)

    def retry(self, flow_id: int) -> CountModel:
        return self._client.ask(Ask("POST", f"/flows/{flow_id}/retry"), CountModel)


class Approvals(Noun):
    """`client.approvals`."""

    def list(self, **filters: Any) -> Iterator[ApprovalModel]:
        """Jobs that await approval, the longest waiting first."""
        return self._client.pages(Ask("GET", "/approvals", filters), Page[ApprovalModel])

    def get(self, job_id: int) -> ApprovalModel:
        return self._client.ask(Ask("GET", f"/approvals/{job_id}"), ApprovalModel)

    def approve(self, job_id: int, reason: str = "", *, by: str | None = None) -> StateModel:
        """An operator may decide for someone else."""
        body = {"reason": reason, **given(by=by)}
        return self._client.ask(act(f"/jobs/{job_id}/approve", body), StateModel)

    def reject(self, job_id: int, reason: str, *, by: str | None = None) -> StateModel:
        body = {"reason": reason, **given(by=by)}
        return self._client.ask(act(f"/jobs/{job_id}/reject", body), StateModel)
