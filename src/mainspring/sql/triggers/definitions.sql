-- Triggers on mainspring.definitions.

-- Runs as whoever writes the row. What runs under a role can be changed by whoever has its rights;
-- all else, and what is built in, only with those of the owner.
create or replace function mainspring.check_definition_owner()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    key text := case when tg_op = 'DELETE' then old.key else new.key end;
    role name := case when tg_op <> 'INSERT' and old.kind = 'sql' then old.spec ->> 'role' end;
    wrong text[];
begin
    if mainspring.acts_as_owner() then
        null;
    elsif key like 'mainspring.%' or (tg_op = 'UPDATE' and old.key like 'mainspring.%') then
        wrong := '{key,is built in and for operators only}';
    elsif tg_op <> 'INSERT' and old.kind <> 'sql' then
        wrong := array['kind', format('is %s; only the owner of Mainspring can change it',
                                      old.kind)];
    elsif tg_op <> 'INSERT' and not exists (
        select from pg_roles as known where known.rolname = role
           and mainspring.has_rights_of(current_user, known.rolname)) then
        wrong := array['role', format(
            'is %s, whose rights %s does not have; ask an administrator to run: %s',
            role, current_user, mainspring.grant_of(role, current_user))];
    end if;
    if wrong is not null then
        raise exception using errcode = 'MS050',
            message = format('%s: %s %s', key, wrong[1], wrong[2]),
            detail = jsonb_build_object('key', key, 'field', wrong[1], 'problem', wrong[2]);
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end
$$;

create or replace trigger definitions_check_owner before insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.check_definition_owner();

-- Runs as whoever writes the row: nobody can have something run under a role that is not theirs.
create or replace function mainspring.check_definition_role()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    role text;
    problem text;
begin
    if tg_op = 'UPDATE' and new.spec is not distinct from old.spec then
        return new;
    end if;
    if new.kind = 'sql' then
        role := coalesce(new.spec ->> 'role', current_user);
        if exists (select from pg_roles where rolname = role)
           and not mainspring.may_set_role(current_user, role) then
            problem := format('%s may not become %s; ask an administrator to run: %s',
                              current_user, role, mainspring.grant_of(role, current_user));
            raise exception using errcode = 'MS050',
                message = format('%s: role: %s', new.key, problem),
                detail = jsonb_build_object('key', new.key, 'field', 'role', 'problem', problem);
        end if;
        if new.spec -> 'trusted' = 'true'
           and not mainspring.may_set_role(current_user, (
               select nspowner::regrole::name from pg_namespace where nspname = 'mainspring')) then
            raise exception using errcode = 'MS050',
                message = new.key || ': trusted: can only be set by the owner of Mainspring',
                detail = jsonb_build_object('key', new.key, 'field', 'trusted', 'problem',
                    'can only be set by the owner of Mainspring');
        end if;
        new.spec := new.spec || jsonb_build_object('role', role);
    end if;
    return new;
end
$$;

create or replace trigger definitions_check_role before insert or update of kind, spec
    on mainspring.definitions
    for each row execute function mainspring.check_definition_role();

-- Checks a definition and sets the columns that follow from others.
create or replace function mainspring.prepare_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text[];
begin
    perform mainspring.check_definition_key(new);
    if tg_op = 'UPDATE' and new.kind <> old.kind then
        perform mainspring.refuse_definition(
            new.key, 'kind', format('is %s and cannot be changed', old.kind));
    end if;
    new.limit_name := mainspring.limit_name_of(new, tg_op = 'INSERT');
    new.max_attempts := case when new.delivery = 'at_most_once' then 1 else new.max_attempts end;
    new.is_plain := mainspring.is_plain_definition(new);
    if tg_op = 'UPDATE' and new is not distinct from old then
        return new;
    end if;
    wrong := mainspring.wrong_default(new);
    -- An older one that is larger can still be deactivated.
    if tg_op = 'INSERT'
       or (new.description, new.tags, new.approvers, new.arg_schema, new.spec) is distinct from
          (old.description, old.tags, old.approvers, old.arg_schema, old.spec) then
        wrong := coalesce(wrong, mainspring.wrong_definition_size(new));
    end if;
    if wrong is not null then
        perform mainspring.refuse_definition(new.key, wrong[1], wrong[2]);
    end if;
    if new.limit_by is not null and new.limit_name is null then
        perform mainspring.refuse_definition(new.key, 'limit_by',
            'needs a limit: give concurrency, key_concurrency, rate or limit');
    end if;
    if tg_op = 'INSERT' or new.kind = 'command' or new.spec is distinct from old.spec then
        perform mainspring.check_definition_spec(new);
    end if;
    new.updated_at := now();
    new.secret_paths := mainspring.secret_paths(new.arg_schema);
    new.schema_key := mainspring.schema_key_of(new.arg_schema);
    if tg_op = 'INSERT' then
        -- Of one that was deleted there may still be jobs.
        new.version := 1 + coalesce((select max(kept.version)
                                       from mainspring.definition_versions as kept
                                      where kept.key = new.key), 0);
    elsif to_jsonb(mainspring.version_of(new)) - 'secret_paths'
          is distinct from to_jsonb(mainspring.version_of(old)) - 'secret_paths' then
        new.version := old.version + 1;
    end if;
    return new;
end
$$;

create or replace trigger definitions_prepare before insert or update on mainspring.definitions
    for each row execute function mainspring.prepare_definition();

-- Refuses to delete what something would go on to ask for.
create or replace function mainspring.keep_used_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    used text;
begin
    select 'schedule ' || quote_literal(s.name) || ' of tenant ' || s.tenant_id into used
      from mainspring.schedules as s where s.definition = old.key order by s.schedule_id limit 1;
    if used is null then
        select 'trigger ' || quote_literal(t.name) || ' of tenant ' || t.tenant_id into used
          from mainspring.triggers as t where t.definition = old.key order by t.trigger_id limit 1;
    end if;
    if used is not null then
        perform mainspring.refuse_definition(old.key, 'key', format(
            'is used by the %s; delete that first, or deactivate the definition', used));
    end if;
    return old;
end
$$;

create or replace trigger definitions_keep_used before delete on mainspring.definitions
    for each row execute function mainspring.keep_used_definition();

-- Keeps the limit that a definition has of its own.
create or replace function mainspring.keep_limit()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op <> 'INSERT' and old.limit_name = old.key
       and (tg_op = 'DELETE' or new.limit_name is distinct from new.key) then
        delete from mainspring.limits as known where known.name = old.key;
    end if;
    if tg_op <> 'DELETE' and new.limit_name = new.key then
        perform mainspring.write_limit(
            new.key, new.concurrency, new.key_concurrency, new.rate_count, new.rate_period,
            coalesce(new.burst, 1));
    end if;
    return null;
end
$$;

create or replace trigger definitions_keep_limit after insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.keep_limit();

-- Keeps each version of what a worker runs, for the jobs that were enqueued under it.
create or replace function mainspring.keep_version()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into mainspring.definition_versions select (mainspring.version_of(new)).*
    on conflict (key, version) do nothing;
    return null;
end
$$;

create or replace trigger definitions_keep_version after insert or update on mainspring.definitions
    for each row execute function mainspring.keep_version();

-- Puts the live jobs of a definition under its limit, or takes them from under it.
create or replace function mainspring.move_jobs_of_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update mainspring.jobs as job
       set limit_name = owner.limit_name,
           limit_key = case when owner.limit_name is null then null
                            -- One that was given with the job stays.
                            when job.limit_name <> ''
                                 and new.limit_by is not distinct from old.limit_by
                            then job.limit_key
                            else mainspring.limit_key_of(job.payload, new.limit_by, null) end,
           waits_for = case when job.state = 'queued'
                                 and (job.waits_for is null or job.waits_for = 'limit')
                            then mainspring.wait_of(owner.limit_name) else job.waits_for end,
           ready_at = case when job.state = 'queued' and job.waits_for = 'limit'
                                and owner.limit_name is null
                           then clock_timestamp() else job.ready_at end
      from (select t.tenant_id,
                   coalesce(new.limit_name, case when t.max_running is not null then '' end)
                       as limit_name
              from mainspring.tenants as t) as owner
     where job.definition = new.key and owner.tenant_id = job.tenant_id;
    perform mainspring.notify_limits_changed();
    perform mainspring.notify_queue(new.queue);
    return null;
end
$$;

-- Not of columns: another trigger may have set them.
create or replace trigger definitions_move_jobs after update on mainspring.definitions
    for each row when ((new.limit_name, new.limit_by) is distinct from
                       (old.limit_name, old.limit_by))
    execute function mainspring.move_jobs_of_definition();
