-- What a gauge said, now and slot by slot, and whether its thresholds are a part of its sides.
-- Slots can be claimed by hand, and their jobs can have an id that was reserved. Of a worker it is
-- known whether its process is gone.
--
-- works with: 0001

alter table mainspring.schedules
    -- Null for inclusive, as it always was.
    add column gauge_bounds text
        constraint schedules_gauge_bounds check (gauge_bounds in ('inclusive', 'exclusive'));

alter table mainspring.clocks
    add column gauge_value double precision,
    add column gauge_read_at timestamptz;

alter table mainspring.workers
    -- When a process of its host saw that it is gone; null if it only stopped to renew its lease.
    add column died_at timestamptz;

alter table mainspring.slots add column gauge_value double precision;

-- They have another parameter now.
drop function if exists mainspring.trigger_scheduled_job(text, text, boolean);
drop function if exists mainspring.start_slot(
    mainspring.schedules, timestamptz, mainspring.slot_trigger, integer, jsonb, text, boolean);
