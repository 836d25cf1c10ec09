-- The clock of a schedule in a row of its own, narrow, because every fire writes it.

-- When a schedule is due, and how firing it went: what the scheduler writes, apart from what
-- people decide. Each fire updates this row and its two indexes, and no wider one.
create table mainspring.clocks (
    schedule_id bigint primary key,
    -- Counts everything that fires or changes the schedule; whoever fires says which turn was read.
    turn bigint not null default 0,
    -- When the scheduler looks at it next: epoch to compute the first slot, null for never.
    next_run_at timestamptz,
    -- The slot that is due then; it differs from next_run_at by the jitter.
    next_slot_at timestamptz,
    -- Slots count from here: an edit forgets what was missed before it.
    changed_at timestamptz not null default now(),
    checking_until timestamptz,
    last_slot_at timestamptz,
    last_enqueued_at timestamptz,
    last_skipped_at timestamptz,
    last_failed_at timestamptz,
    enqueued_count bigint not null default 0,
    skipped_count bigint not null default 0,
    failed_count bigint not null default 0,
    missed_count bigint not null default 0,
    lateness_total interval not null default '0',
    lateness_worst interval not null default '0',
    -- Stands for all that decides which slots there are and what becomes of them; schedules with
    -- the same are planned together.
    plan_key uuid not null,
    retry_count integer not null default 0,
    -- Without a condition or a template: it can be fired with others, in a set.
    is_plain boolean not null,
    gauge_is_high boolean not null default false,
    definition text collate "C" not null,
    checking_by text,
    last_error text
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);

insert into mainspring.clocks (
    schedule_id, turn, next_run_at, next_slot_at, changed_at, checking_until, last_slot_at,
    last_enqueued_at, last_skipped_at, last_failed_at, enqueued_count, skipped_count,
    failed_count, missed_count, lateness_total, lateness_worst, plan_key, retry_count, is_plain,
    gauge_is_high, definition, checking_by, last_error)
select schedule_id, turn, next_run_at, next_slot_at, changed_at, checking_until, last_slot_at,
       last_enqueued_at, last_skipped_at, last_failed_at, enqueued_count, skipped_count,
       failed_count, missed_count, lateness_total, lateness_worst,
       -- Its own until the schedule is written again; it is then planned together with its like.
       gen_random_uuid(), retry_count,
       num_nonnulls(launcher, condition_sql, gauge_sql) = 0 and not is_templated,
       gauge_is_high, definition, checking_by, last_error
  from mainspring.schedules;

-- Serves due, due_checks and next_fire.
create index clocks_due on mainspring.clocks (next_run_at) where next_run_at is not null;
-- Serves drop_checks.
create index clocks_checking on mainspring.clocks (schedule_id) where checking_until is not null;

drop view if exists mainspring.schedule_status;
drop trigger if exists schedules_move on mainspring.schedules;
drop trigger if exists schedules_tell on mainspring.schedules;
drop trigger if exists schedules_prepare on mainspring.schedules;
drop function if exists mainspring.move_schedule(), mainspring.tell_schedulers(),
    mainspring.note_failure(mainspring.schedules, text);

alter table mainspring.schedules
    drop constraint schedules_disabled_never_run,
    drop column turn, drop column next_run_at, drop column next_slot_at, drop column changed_at,
    drop column checking_until, drop column checking_by, drop column last_slot_at,
    drop column last_enqueued_at, drop column last_skipped_at, drop column last_failed_at,
    drop column enqueued_count, drop column skipped_count, drop column failed_count,
    drop column missed_count, drop column lateness_total, drop column lateness_worst,
    drop column retry_count, drop column gauge_is_high, drop column last_error,
    -- An instant that a person writes here becomes the next slot; its clock takes it, and the
    -- column is null again.
    add column run_at timestamptz,
    -- Kept by a trigger: what its jobs say of where they come from.
    add column origin jsonb not null default '{}';

update mainspring.schedules set origin = jsonb_build_object('schedule', name);
