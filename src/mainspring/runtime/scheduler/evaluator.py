"""Checks of schedules that are due: condition, payload, and the plan that follows from them.

Every check runs outside any lock and with a timeout of its own, so a slow one delays nobody.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import psycopg

from mainspring import telemetry
from mainspring.db.pool import AsyncPool
from mainspring.db.role_logins import RoleLogins
from mainspring.domain import templates
from mainspring.domain.errors import InputError
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.schedules import conditions, slots
from mainspring.domain.schedules.conditions import Failed, GaugeBounds, Run, Skip, Verdict
from mainspring.domain.schedules.model import ScheduleSpec, template_values
from mainspring.domain.schedules.slots import Plan, PlannedSlot, SlotOutcome
from mainspring.domain.suggestions import closest
from mainspring.domain.types import JobId, SlotTrigger
from mainspring.runtime.scheduler.launcher_queue import LauncherQueue
from mainspring.runtime.scheduler.launchers import Launch, Launcher, Launchers, has_own_launch
from mainspring.runtime.scheduler.payload_rules import DefinitionRules
from mainspring.runtime.scheduler.plans import carry_out
from mainspring.runtime.scheduler.secrets import ScheduleSecrets
from mainspring.services.drafts import checking_draft
from mainspring.services.payloads import prepare
from mainspring.services.secrets import Owner, holds_encrypted
from mainspring.settings import Settings
from mainspring.store import conditions as condition_store
from mainspring.store import due_schedules as store
from mainspring.store import slots as slot_store
from mainspring.store.due_schedules import Applied, DueSchedule

# Beyond the server's own timeout, in case it cannot be heard any more.
_NETWORK_SECONDS = 5
_STILL_LIVE = "an earlier run is still live"


class Checker:
    """Judges due schedules and writes what follows."""

    def __init__(
        self,
        pool: AsyncPool,
        launchers: Mapping[str, type[Launcher]],
        job_queue: Any,
        *,
        settings: Settings,
        logins: RoleLogins,
    ) -> None:
        self._pool = pool
        self._secrets = ScheduleSecrets(pool, settings)
        self._rules = DefinitionRules(pool)
        self._logins = logins
        self._settings = settings
        self._registered = launchers
        self._job_queue = job_queue
        self._launchers = Launchers()

    async def check(self, due: DueSchedule) -> None:
        """Decide about a slot that time has brought."""
        due = self._secrets.decrypted(due)
        try:
            plan = await asyncio.to_thread(_plan, due)
        except InputError as error:
            await self._refuse(due, str(error))
            return
        firing = [slot for slot in plan.slots if slot.outcome is SlotOutcome.ENQUEUED]
        verdict: Verdict = Run()
        if firing:
            last = firing[-1]
            verdict = await self._judge(due, Launch(due.spec, last.at, last.trigger, last.missed))
        payloads: dict[datetime, Any] = {}
        if isinstance(verdict, Run):
            verdict, payloads = await self._own_payloads(due, verdict, firing)
        facts = plan_facts(plan, verdict, payloads)
        if isinstance(verdict, Run):
            facts["schema_key"] = await self._rules.fitting_schema(due)
        async with self._pool.connection() as connection:
            whose = {"schedule_id": due.schedule_id, "revision": due.revision, "waits": True}
            (applied,) = await carry_out(connection, [{**whose, **facts}])
        if firing:
            _log(due, applied, verdict)

    async def check_asked(self, due: DueSchedule) -> None:
        """Decide about a slot that a person asked for."""
        due = self._secrets.decrypted(due)
        launch = Launch(due.spec, due.slot_at, SlotTrigger.MANUAL, 0, due.is_forced)
        verdict = await self._judge(due, launch)
        plan = {
            "schedule_id": due.schedule_id,
            "slot_at": _stamp(due.slot_at),
            "outcome": _outcome(verdict),
            "reason": _reason(verdict),
            **_run_parts(verdict),
        }
        async with self._pool.connection() as connection:
            applied = await slot_store.apply_trigger(connection, plan)
        _log(due, applied, verdict, counts=False)

    async def _refuse(self, due: DueSchedule, reason: str) -> None:
        """Disable a schedule whose timing was written by plain SQL and cannot be understood."""
        async with self._pool.connection() as connection:
            await store.refuse_timing(connection, [due.schedule_id], [due.revision], reason=reason)
        telemetry.event("schedule_disabled", **due.log_facts(), error=reason)

    async def _judge(self, due: DueSchedule, launch: Launch) -> Verdict:
        verdict = await self._decide(due, launch)
        if isinstance(verdict, Run):
            return verdict
        shown = replace(verdict, reason=clean(await self._secrets.shown(due, verdict.reason)))
        if isinstance(shown, Failed) and shown.traceback:
            return replace(shown, traceback=await self._secrets.shown(due, shown.traceback))
        return shown

    async def _decide(self, due: DueSchedule, launch: Launch) -> Verdict:
        verdict = await self._ask(due, launch)
        if not isinstance(verdict, Run):
            return verdict
        payload = due.spec.payload if verdict.payload is None else verdict.payload
        try:
            if verdict.payload is None and templates.has_template(payload):
                payload = templates.render(payload, _values(launch))
            ensure_text("job_type", verdict.definition or due.spec.definition)
            is_own = verdict.payload is None
            payload = await self._prepared(due, payload, verdict.definition, is_own=is_own)
        except InputError as error:
            return Failed(str(error))
        return replace(verdict, payload=payload)

    async def _own_payloads(
        self, due: DueSchedule, verdict: Run, firing: Sequence[PlannedSlot]
    ) -> tuple[Verdict, dict[datetime, Any]]:
        """The payloads of slots that have one of their own; the verdict fails if one is wrong."""
        try:
            rendered = _payloads(due.spec, firing)
            return verdict, {at: await self._prepared(due, each) for at, each in rendered.items()}
        except InputError as error:
            return Failed(str(error)), {}

    async def _prepared(
        self, due: DueSchedule, payload: Any, definition: str | None = None, *, is_own: bool = True
    ) -> Any:
        """The payload as its job stores it, of another definition if given; one that is not the
        schedule's own comes from a launcher."""
        key = definition or due.spec.definition
        rules = await self._rules.find(key)
        await checking_draft(payload, rules).arun(None)
        return prepare(
            payload,
            rules,
            Owner(due.spec.tenant_id, key),
            settings=self._settings,
            is_checked=False,
            # Without the keys a launcher sees encrypted values, and may pass them on.
            is_stored=is_own or holds_encrypted(due.spec.payload),
        ).value

    async def _ask(self, due: DueSchedule, launch: Launch) -> Verdict:
        spec = due.spec
        if spec.launcher is not None:
            known = self._registered.get(spec.launcher)
            if known is None:
                return Failed(_unknown(spec.launcher, self._registered))
            reserved = await self._reserved() if has_own_launch(known) else None
            queue = LauncherQueue(self._job_queue, spec.tenant_id, reserved)
            with telemetry.hiding(await self._secrets.redactor(due)):
                return await self._launchers.ask(known, launch, queue)
        if launch.is_forced:
            return Run()
        if spec.condition_sql is not None:
            return await self._ask_database(due, spec.condition_sql)
        if spec.gauge_sql is not None:
            return await self._ask_database(due, spec.gauge_sql)
        return Run()

    async def _reserved(self) -> JobId:
        async with self._pool.connection() as connection:
            return await store.reserve_job(connection)

    async def _ask_database(self, due: DueSchedule, sql: str) -> Verdict:
        limit, role = due.spec.condition_timeout.total_seconds(), due.spec.condition_role
        # A login made for conditions is their role.
        wanted = None if self._settings.condition_database_url else role
        try:
            async with (
                asyncio.timeout(limit + _NETWORK_SECONDS),
                self._logins.for_conditions(role) as connection,
            ):
                answer = await condition_store.first_value(
                    connection, sql, role=wanted, limit=due.spec.condition_timeout
                )
            return _read(due, answer)
        except (psycopg.errors.QueryCanceled, TimeoutError):
            return Failed(f"the condition did not finish within {limit:g} s")
        except psycopg.errors.ReadOnlySqlTransaction:
            return Failed("the condition tried to write; conditions may only read")
        except (psycopg.Error, DatabaseError) as error:
            said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
            return Failed(f"the condition failed: {said or error}")
        except InputError as error:
            return Failed(str(error))


def _plan(due: DueSchedule) -> Plan:
    return slots.plan(due.timing(), due.spec.misfires, due.slot_at, now=due.now)


def plan_facts(
    plan: Plan, verdict: Verdict, payloads: Mapping[datetime, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The plan as the database carries it out, but for the schedule and its revision; payloads are
    those of slots that have one of their own."""
    decided = _outcome(verdict)
    firing = [slot.at for slot in plan.slots if slot.outcome is SlotOutcome.ENQUEUED]
    newest = firing[-1] if firing else None
    return {
        "next_slot_at": None if plan.next_slot_at is None else _stamp(plan.next_slot_at),
        "in_line": plan.runs_in_line,
        "failure": verdict.reason if isinstance(verdict, Failed) else None,
        "is_permanent": isinstance(verdict, Failed) and verdict.is_permanent,
        "slots": [
            {
                "at": _stamp(slot.at),
                "outcome": decided if slot.outcome is SlotOutcome.ENQUEUED else slot.outcome,
                "source": slot.trigger,
                "missed": slot.missed,
                "reason": slot.reason or _reason(verdict),
                "payload": payloads.get(slot.at),
                **_slot_parts(verdict, slot, newest),
            }
            for slot in plan.slots
        ],
        **_run_parts(verdict),
    }


def _payloads(spec: ScheduleSpec, firing: Sequence[PlannedSlot]) -> dict[datetime, Any]:
    """By slot, where several fire from one template."""
    if len(firing) < 2 or spec.launcher is not None or not templates.has_template(spec.payload):
        return {}
    launches = [Launch(spec, slot.at, slot.trigger, slot.missed) for slot in firing]
    return {each.at: templates.render(spec.payload, _values(each)) for each in launches}


def _run_parts(verdict: Verdict) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if isinstance(verdict, Run) and verdict.payload is not None:
        parts["payload"] = verdict.payload
    if isinstance(verdict, Run) and verdict.definition is not None:
        parts["definition"] = verdict.definition
    if isinstance(verdict, Run) and verdict.job_id is not None:
        parts["job_id"] = verdict.job_id
    if not isinstance(verdict, Failed) and verdict.gauge is not None:
        parts["gauge_is_high"] = verdict.gauge.is_high
        # As text, since JSON has no infinity.
        parts["gauge_value"] = str(verdict.gauge.value)
    return parts


def _slot_parts(verdict: Verdict, slot: PlannedSlot, newest: datetime | None) -> dict[str, Any]:
    """What the check said of a slot that fires; a reserved id is that of the newest."""
    if slot.outcome is not SlotOutcome.ENQUEUED:
        return {}
    parts = _run_parts(verdict)
    names = ("gauge_value", "job_id") if slot.at == newest else ("gauge_value",)
    return {name: parts[name] for name in names if name in parts}


def _outcome(verdict: Verdict) -> SlotOutcome:
    match verdict:
        case Run():
            return SlotOutcome.ENQUEUED
        case Skip():
            return SlotOutcome.SKIPPED
        case Failed():
            return SlotOutcome.FAILED


def _reason(verdict: Verdict) -> str | None:
    return None if isinstance(verdict, Run) else verdict.reason


def _read(due: DueSchedule, answer: object) -> Verdict:
    spec = due.spec
    if spec.gauge_sql is not None and spec.gauge_lower is not None and spec.gauge_upper is not None:
        return conditions.read_gauge(
            answer,
            lower=spec.gauge_lower,
            upper=spec.gauge_upper,
            was_high=due.gauge_is_high,
            bounds=spec.gauge_bounds or GaugeBounds.INCLUSIVE,
        )
    return Run() if conditions.is_met(answer) else Skip()


def _values(launch: Launch) -> dict[str, Any]:
    return template_values(launch.schedule, launch.at, launch.trigger, missed=launch.missed)


def _unknown(name: str, registered: Mapping[str, Any]) -> str:
    near = closest(name, registered)
    hint = f"did you mean {near!r}?" if near else "register it with app.register_launcher"
    return f"no launcher is registered as {name!r}; {hint}"


def _log(
    due: DueSchedule, applied: Applied | None, verdict: Verdict, *, counts: bool = True
) -> None:
    """`counts` says whether a failure leads to the end of the schedule."""
    facts, reason = due.log_facts(), _reason(verdict)
    outcome = None if applied is None else applied.outcome
    if applied is not None and applied.fired is not None:
        telemetry.event("schedule_fired", **applied.fired.log_facts())
    if outcome is SlotOutcome.SKIPPED:
        telemetry.event("schedule_skipped", **facts, reason=reason or _STILL_LIVE)
    elif outcome is SlotOutcome.FAILED:
        traceback = verdict.traceback if isinstance(verdict, Failed) else ""
        failure = reason or (applied.failure if applied is not None else None)
        why = f"{failure}\n{traceback}".strip()
        retry = due.retry_count + counts
        telemetry.event("schedule_failed", **facts, error=why, retry=retry)
        if counts and retry >= due.spec.max_retries:
            telemetry.event("schedule_disabled", **facts, error=failure)


def _stamp(instant: datetime) -> str:
    return instant.isoformat()
