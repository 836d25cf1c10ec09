-- Limits: set and remove.

-- Sets a limit that definitions share; a definition's own is set with the definition.
create or replace function mainspring.set_limit(
    name text, concurrency integer default null, key_concurrency integer default null,
    rate_count integer default null, rate_period interval default null, burst integer default 1
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform mainspring.check_text('name', set_limit.name);
    if set_limit.name is null or set_limit.name !~ '^[A-Za-z_][A-Za-z0-9_.:-]{0,199}$' then
        perform mainspring.refuse('MS003', 'name must start with a letter or _ and contain only '
            || 'letters, digits and _ . : - (at most 200 characters)', '{"option": "name"}');
    end if;
    if least(set_limit.concurrency, set_limit.key_concurrency) < 0 then
        perform mainspring.refuse('MS003', 'concurrency must be zero or more',
            '{"option": "concurrency"}');
    end if;
    if set_limit.rate_count < 1 or set_limit.rate_period <= '0'
       or (set_limit.rate_count is null) <> (set_limit.rate_period is null) then
        perform mainspring.refuse('MS003', 'rate must be a count of 1 or more in a period longer '
            || 'than zero', '{"option": "rate"}');
    end if;
    if coalesce(set_limit.burst, 0) < 1 then
        perform mainspring.refuse('MS003', 'burst must be 1 or more', '{"option": "burst"}');
    end if;
    if greatest(set_limit.concurrency, set_limit.key_concurrency, set_limit.rate_count,
                set_limit.burst) > mainspring.largest_count() then
        perform mainspring.refuse('MS003', 'limit must be at most 1000000000',
            '{"option": "limit"}');
    end if;
    if exists (select from mainspring.definitions as d
                where d.key = set_limit.name and d.limit_name = d.key) then
        perform mainspring.refuse('MS003', 'name belongs to a definition with a limit of its own; '
            || 'change the definition', '{"option": "name"}');
    end if;
    perform mainspring.write_limit(
        set_limit.name, set_limit.concurrency, set_limit.key_concurrency, set_limit.rate_count,
        set_limit.rate_period, set_limit.burst);
end
$$;
comment on function mainspring.set_limit is
    'Sets what a limit allows; null means unlimited.';

-- Removes a limit that definitions share.
create or replace function mainspring.remove_limit(name text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from mainspring.definitions as d
                where d.key = remove_limit.name and d.limit_name = d.key) then
        perform mainspring.refuse('MS003', 'name belongs to a definition with a limit of its own; '
            || 'change the definition', '{"option": "name"}');
    end if;
    delete from mainspring.limits as known where known.name = remove_limit.name;
    return found;
end
$$;
comment on function mainspring.remove_limit is
    'Removes a limit and releases the jobs that wait for it; returns whether it existed.';
