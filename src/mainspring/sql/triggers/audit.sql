-- Writes who changed what to mainspring.audit, for every table that people edit.

create or replace function mainspring.audit_bearer()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unsaid text[] := array['created_at', 'last_used_at', 'last_seen_at', 'digest', 'created_by'];
    was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - unsaid else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - unsaid else '{}' end;
begin
    if was = is_now or (was || is_now) ->> 'kind' in ('session', 'login', 'console') then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id, ''), mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when was ->> 'revoked_at' is null and is_now ->> 'revoked_at' is not null then 'revoke'
             else 'update' end,
        tg_argv[0], coalesce(new.name, old.name),
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger tokens_audit after insert or update or delete on mainspring.tokens
    for each row execute function mainspring.audit_bearer('token');
create or replace trigger people_audit after insert or update or delete on mainspring.people
    for each row execute function mainspring.audit_bearer('person');

create or replace function mainspring.audit_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.definition_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.definition_facts(new) else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        '', mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.is_active and not old.is_active then 'activate'
             when old.is_active and not new.is_active then 'deactivate' else 'update' end,
        'definition', coalesce(new.key, old.key),
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger definitions_audit after insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.audit_definition();

create or replace function mainspring.audit_schedule()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.schedule_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.schedule_facts(new) else '{}' end;
begin
    if tg_op = 'UPDATE' and was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, reason, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.enabled and not old.enabled then 'enable'
             when old.enabled and not new.enabled then 'disable' else 'update' end,
        'schedule', coalesce(new.name, old.name), new.disabled_reason,
        mainspring.differing_shown(was, is_now), mainspring.differing_shown(is_now, was));
    return null;
end
$$;

create or replace trigger schedules_audit after insert or delete or update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, overlap, catch_up, launcher, condition_sql, gauge_sql, gauge_lower,
    gauge_upper, condition_role, payload, definition, misfire_grace, max_running, catch_up_limit,
    catch_up_max_age, run_timeout, max_retries, description, queue, priority, max_attempts,
    condition_timeout
    on mainspring.schedules
    for each row execute function mainspring.audit_schedule();

create or replace function mainspring.audit_tenant()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unsaid text[] := array['created_at', 'updated_at'];
    was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - unsaid else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - unsaid else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete' else 'update' end,
        'tenant', coalesce(new.tenant_id, old.tenant_id),
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger tenants_audit after insert or update or delete on mainspring.tenants
    for each row execute function mainspring.audit_tenant();

create or replace function mainspring.audit_trigger()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.trigger_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.trigger_facts(new) else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.is_enabled and not old.is_enabled then 'enable'
             when old.is_enabled and not new.is_enabled then 'disable' else 'update' end,
        'trigger', coalesce(new.name, old.name),
        mainspring.differing_shown(was, is_now), mainspring.differing_shown(is_now, was));
    return null;
end
$$;

create or replace trigger triggers_audit after insert or update or delete on mainspring.triggers
    for each row execute function mainspring.audit_trigger();
