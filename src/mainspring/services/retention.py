"""Use cases of retention: list, save and remove policies, and count what they would remove."""

from collections.abc import Mapping
from datetime import timedelta

from mainspring.db.sessions import ServiceSession
from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.retention import RetentionNotFound
from mainspring.domain.retention import (
    RetentionBounds,
    RetentionDay,
    RetentionKind,
    RetentionPolicy,
    applying,
    ensure_keep,
    ensure_kind,
    ensure_no_shorter,
    ensure_state,
    ensure_within,
)
from mainspring.domain.types import JobState
from mainspring.services import tenants
from mainspring.settings import Settings
from mainspring.store import retention as store


def defaults_of(settings: Settings) -> Mapping[RetentionKind, timedelta]:
    """What applies without a policy for everyone; other kinds are kept for ever."""
    return {
        RetentionKind.SLOTS: timedelta(days=settings.slot_retention_days),
        RetentionKind.EVENTS: timedelta(days=settings.event_retention_days),
    }


def bounds_of(settings: Settings) -> RetentionBounds:
    """What the admins of tenants may choose."""
    return RetentionBounds(
        timedelta(days=settings.tenant_retention_least_days),
        timedelta(days=settings.tenant_retention_most_days),
    )


async def list_policies(
    session: ServiceSession, tenant_id: str | None = None
) -> list[RetentionPolicy]:
    """By kind, tenant and state, with the defaults that apply: those that matter to a tenant, which
    are its own and those for everyone, or all."""
    known = await store.list_policies(session, tenant_id)
    general = {policy.kind for policy in known if policy.tenant_id is None}
    known += [
        RetentionPolicy(kind, keep, is_default=True)
        for kind, keep in defaults_of(session.settings).items()
        if kind not in general
    ]
    return sorted(known, key=lambda it: (it.kind, it.tenant_id or "", it.state or ""))


async def set_policy(
    session: ServiceSession,
    kind: str,
    *,
    keep: timedelta,
    tenant_id: str | None,
    state: str | None,
    bounds: RetentionBounds | None = None,
    actor: str | None = None,
) -> RetentionPolicy:
    """Save a policy of a tenant, or of everyone; with bounds, as an admin of the tenant may."""
    policy = await _checked(session, kind, keep=keep, tenant_id=tenant_id, state=state)
    if bounds is not None:
        ensure_within(bounds, policy.keep)
        if policy.kind is RetentionKind.AUDIT:
            now = applying(await list_policies(session, tenant_id), policy.kind, tenant_id)
            ensure_no_shorter(now, policy.keep)
    await store.set_policy(session, policy, actor)
    return policy


async def unset_policy(
    session: ServiceSession,
    kind: str,
    *,
    tenant_id: str | None,
    state: str | None,
    bounds: RetentionBounds | None = None,
    actor: str | None = None,
) -> None:
    """Remove a policy, so that the next more general one applies; raises RetentionNotFound."""
    known_kind = ensure_kind(kind)
    known_state = ensure_state(known_kind, state)
    if bounds is not None and known_kind is RetentionKind.AUDIT:
        policies = await list_policies(session, tenant_id)
        now = applying(policies, known_kind, tenant_id)
        ensure_no_shorter(now, applying(policies, known_kind, None))
    if not await store.unset_policy(
        session, known_kind, tenant_id=tenant_id, state=known_state, actor=actor
    ):
        raise RetentionNotFound(known_kind, tenant_id, known_state)


async def preview(
    session: ServiceSession,
    kind: str | None = None,
    *,
    keep: timedelta | None = None,
    tenant_id: str | None = None,
    state: str | None = None,
) -> list[RetentionDay]:
    """What the next pass removes, by kind and day: by the policies that are saved, or of one kind
    as if one more were."""
    if kind is None and keep is not None:
        raise InvalidOption("kind", "is required with keep; a policy is about one kind")
    if kind is None:
        return [
            day
            for each in RetentionKind
            for day in await _past(session, RetentionPolicy(each, timedelta(0), tenant_id), None)
        ]
    if keep is None:
        if state is not None:
            raise InvalidOption("keep", "is required with state; both say what a policy would do")
        known = RetentionPolicy(ensure_kind(kind), timedelta(0), tenant_id)
        return await _past(session, known, None)
    policy = await _checked(session, kind, keep=keep, tenant_id=tenant_id, state=state)
    return await _past(session, policy, policy.keep)


async def _checked(
    session: ServiceSession, kind: str, *, keep: timedelta, tenant_id: str | None, state: str | None
) -> RetentionPolicy:
    known = ensure_kind(kind)
    known_state: JobState | None = ensure_state(known, state)
    policy = RetentionPolicy(known, ensure_keep(known, keep), tenant_id, known_state)
    if tenant_id is not None:
        await tenants.ensure_known(session, tenant_id)
    return policy


async def _past(
    session: ServiceSession, policy: RetentionPolicy, keep: timedelta | None
) -> list[RetentionDay]:
    if policy.kind is RetentionKind.JOBS:
        return await store.past_jobs(session, policy.tenant_id, state=policy.state, keep=keep)
    fallback = defaults_of(session.settings).get(policy.kind)
    return await store.past_records(
        session, policy.kind, tenant_id=policy.tenant_id, fallback=fallback, keep=keep
    )
