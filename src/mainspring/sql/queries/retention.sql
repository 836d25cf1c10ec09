-- name: list_retention
-- scope: system
-- The policies that matter to a tenant, or all of them: by kind, tenant and state, with seconds.
select kind, tenant_id, state, keep from mainspring.retention_of(%(tenant_id)s::text);

-- name: set_retention
-- scope: system
-- Saves a policy of a tenant, or of everyone.
select mainspring.set_retention(
    %(kind)s, %(tenant_id)s::text, %(state)s::text, %(keep)s::interval)
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: unset_retention
-- scope: system
-- Removes a policy of a tenant, or of everyone; says whether there was one.
select mainspring.unset_retention(%(kind)s, %(tenant_id)s::text, %(state)s::text)
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: past_jobs
-- scope: system
-- The jobs that the next pass removes, by day: with a policy, if given, and without it.
select day::text, count, already
  from mainspring.past_jobs_by_day(%(tenant_id)s::text, %(state)s::text, %(keep)s::interval);

-- name: past_records
-- scope: system
-- The same of audit entries, slots or events.
select day::text, count, already
  from mainspring.past_records_by_day(
      %(kind)s, %(tenant_id)s::text, %(fallback)s::interval, %(keep)s::interval);

-- name: record_windows
-- scope: system
-- For each period that records of a kind are kept for, up to when they are to be looked at, and
-- what stands for all policies of the kind.
with policy as (
    select tenant_id, keep from mainspring.record_policies(%(kind)s, %(fallback)s::interval)
     where keep is not null
)
select keep::text, 'epoch'::timestamptz, now() - keep, now(),
       (select md5(string_agg(concat_ws(',', tenant_id, keep), ';' order by tenant_id, keep))
          from policy)
  from policy group by keep order by keep;

-- name: prune_audit
-- scope: system
-- Removes entries of the audit that were made between two instants and whose retention has passed,
-- a batch at a time.
with policy as materialized (
    select tenant_id, keep from mainspring.record_policies('audit', %(fallback)s::interval)
)
delete from mainspring.audit as entry
 where entry.audit_id = any (array(
    select old.audit_id from mainspring.audit as old
     where old.at >= %(after)s::timestamptz and old.at < %(before)s::timestamptz
       and old.at < now() - coalesce(
           (select policy.keep from policy where policy.tenant_id = old.tenant_id),
           (select policy.keep from policy where policy.tenant_id is null))
     order by old.at limit %(limit)s));

-- name: prune_slots
-- scope: system
-- Removes slots that were due between two instants and whose retention has passed, a batch at a
-- time; one whose job has not ended stays.
with policy as materialized (
    select tenant_id, keep from mainspring.record_policies('slots', %(fallback)s::interval)
)
delete from mainspring.slots as slot
 where slot.ctid = any (array(
    select old.ctid from mainspring.slots as old
     where old.scheduled_for >= %(after)s::timestamptz
       and old.scheduled_for < %(before)s::timestamptz
       and old.scheduled_for < now() - coalesce(
           (select policy.keep from policy where policy.tenant_id = (
                select schedule.tenant_id from mainspring.schedules as schedule
                 where schedule.schedule_id = old.schedule_id)),
           (select policy.keep from policy where policy.tenant_id is null))
       and (old.outcome <> 'enqueued' or old.run_state is not null)
     limit %(limit)s for update skip locked));

-- name: prune_events
-- scope: system
-- Removes events that were handled between two instants and whose retention has passed, a batch at
-- a time, with what came of them.
with policy as materialized (
    select tenant_id, keep from mainspring.record_policies('events', %(fallback)s::interval)
)
delete from mainspring.events as event
 where event.ctid = any (array(
    select old.ctid from mainspring.events as old
     where old.handled_at >= %(after)s::timestamptz and old.handled_at < %(before)s::timestamptz
       and old.handled_at < now() - coalesce(
           (select policy.keep from policy where policy.tenant_id = old.tenant_id),
           (select policy.keep from policy where policy.tenant_id is null))
     order by old.handled_at limit %(limit)s for update skip locked));
