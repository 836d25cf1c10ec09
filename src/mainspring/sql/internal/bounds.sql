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

-- Whether the queue, the correlation id and the tags of a job are surely right. Simple enough to
-- become a part of the statement that asks; check_words looks closer where this says no.
create or replace function mainspring.are_plain_words(
    queue text, correlation_id text, tags text[]
)
returns boolean
language sql stable
return (queue is null or mainspring.wrong_queue(queue) is null)
   and coalesce(length(correlation_id), 1) between 1 and 500
   and (tags is null
        or (cardinality(tags) <= 50 and coalesce(array_ndims(tags), 1) = 1 and '' <> all (tags)
            and length(array_to_string(tags, '')) <= 500));

-- Refuses a queue that has no such name.
create or replace function mainspring.check_queue(queue text)
returns void
language plpgsql immutable
as $$
begin
    perform mainspring.check_text('queue', queue);
    if mainspring.wrong_queue(queue) is not null then
        perform mainspring.refuse('MS003', 'queue ' || mainspring.wrong_queue(queue) || ': '
            || quote_literal(queue), '{"option": "queue"}');
    end if;
end
$$;

-- Refuses a queue, a correlation id or tags that are wrong.
create or replace function mainspring.check_words(queue text, correlation_id text, tags text[])
returns void
language plpgsql immutable
as $$
begin
    perform mainspring.check_queue(queue);
    perform mainspring.check_text('correlation_id', correlation_id);
    if cardinality(tags) > 50 then
        perform mainspring.refuse('MS003', 'tags must have at most 50 entries, not '
            || cardinality(tags), '{"option": "tags"}');
    elsif array_ndims(tags) > 1 or array_position(tags, null) is not null then
        perform mainspring.refuse('MS003', 'tags must be a list of strings', '{"option": "tags"}');
    end if;
    perform mainspring.check_text('tags', tag) from unnest(tags) as tag;
end
$$;

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

-- How many jobs one call can enqueue.
create or replace function mainspring.most_jobs()
returns integer
language sql immutable
return 1000000;

-- How many bytes the steps of a flow can have together.
create or replace function mainspring.most_flow_bytes()
returns integer
language sql immutable
return 67108864;

-- How many characters a description, a reason or a statement of a condition can have.
create or replace function mainspring.longest_text()
returns integer
language sql immutable
return 10000;
