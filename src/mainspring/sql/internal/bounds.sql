-- Bounds that several tables and functions share. domain/ has the same for Python, and
-- tests/contract/test_rules_agree.py compares the two.

-- The longest delay, timeout or window. In days: a month or a year of an interval is counted as 30
-- or 360 days in a comparison, and as something else when a program reads it.
create or replace function mainspring.longest_delay()
returns interval
language sql immutable
return interval '36500 days';

-- The largest count of a limit.
create or replace function mainspring.largest_count()
returns integer
language sql immutable
return 1000000000;

-- What is wrong with the name of a queue; null if nothing. A comma separates queues on the command
-- line and in settings.
create or replace function mainspring.wrong_queue(queue text)
returns text
language sql immutable
return case when length(queue) not between 1 and 500 then 'must have 1 to 500 characters'
            when queue ~ '^\s|\s$|,'
            then 'must not contain a comma, or start or end with a space' end;

-- How many steps a flow can have.
create or replace function mainspring.most_steps()
returns integer
language sql immutable
return 10000;

-- How many parents a job can have.
create or replace function mainspring.most_parents()
returns integer
language sql immutable
return 10000;

-- How many parents the steps of a flow can have together.
create or replace function mainspring.most_dependencies()
returns integer
language sql immutable
return 50000;
