-- Figures of minutes, hours, days and all time, as far as each step is kept.
create or replace view mainspring.figure_status as
select * from mainspring.figures where mainspring.is_visible(tenant_id);

-- What is live, as of the last look.
create or replace view mainspring.depth_status as
select tenant_id, queue, definition, live, ready, running, waiting_time, waiting_limit,
       waiting_turn, waiting_handler, awaiting_approval, blocked, oldest_ready_at, seen_at
  from mainspring.depths where mainspring.is_visible(tenant_id);

-- Up to when figures are, and up to when hours and days are complete.
create or replace view mainspring.watch_status as
select name, last_at, took from mainspring.watches;
