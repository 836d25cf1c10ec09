"""Use cases of housekeeping: what a process that starts sees to."""

from mainspring import telemetry
from mainspring.db.sessions import ServiceSession, run_call
from mainspring.domain.housekeeping import DEFINITIONS
from mainspring.domain.operations import BULK
from mainspring.domain.tenants import DELETE_TENANT
from mainspring.services.definitions import ensure_registered
from mainspring.store import definitions as definition_store
from mainspring.store import housekeeping as store


async def install(session: ServiceSession, *, with_schedules: bool) -> None:
    """Store the definitions that every worker carries; add the default schedules, the first time
    ever. Whatever a person has made of them since stays."""
    built_in = (*DEFINITIONS, BULK, DELETE_TENANT)
    ensure_registered(await run_call(session, definition_store.sync(built_in)))
    if with_schedules:
        await _install_schedules(session)


async def _install_schedules(session: ServiceSession) -> None:
    # A worker imports nothing of schedules.
    from mainspring.domain.schedules.defaults import REPLACED, SCHEDULES  # noqa: PLC0415
    from mainspring.services.schedules import spec_facts  # noqa: PLC0415

    limit = session.settings.max_payload_bytes
    facts = [{**spec_facts(spec, limit), "replaces": REPLACED.get(spec.name)} for spec in SCHEDULES]
    names = await store.install_schedules(session, facts)
    if names:
        schedules = telemetry.first(names)
        telemetry.event("schedules_installed", count=len(names), schedules=schedules)
