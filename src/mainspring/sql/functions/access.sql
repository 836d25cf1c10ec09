-- The wall between tenants. A request of the API runs as the role mainspring_app, with its tenant,
-- and the member whose own jobs are meant, as settings of the transaction; whoever else is connected
-- is not asked. Row-level security asks is_visible of every table with a tenant. Views and functions
-- that run with the owner's rights, whom it does not concern, ask by themselves.

-- Lets the bearer of a token in for the rest of the transaction. An operator has no tenant and stays
-- outside the wall. Says true, so that a statement can make the rest of itself wait for it.
create or replace function mainspring.enter(digest bytea)
returns boolean
language plpgsql
as $$
declare
    shown record;
begin
    select * into shown from mainspring.bearers as bearer where bearer.digest = enter.digest;
    if shown.token_id is null then
        perform mainspring.refuse('MS080', 'the token is unknown, expired or revoked', '{}');
    end if;
    perform set_config('mainspring.actor', shown.actor, true),
            set_config('mainspring.creator', shown.actor, true),
            set_config('mainspring.approver', shown.approver::text, true);
    if shown.role <> 'operator' then
        perform set_config('mainspring.tenant', shown.tenant_id, true),
                set_config('mainspring.member',
                           case when shown.role = 'member' then shown.actor else '' end, true),
                set_config('role', 'mainspring_app', true);
    end if;
    return true;
end
$$;

-- Where a job came from.
create or replace function mainspring.source_of(schedule_id bigint, created_by text)
returns text
language sql immutable
return case when schedule_id is not null then 'schedule'
            when created_by like 'trigger:%' then 'trigger'
            when created_by is not null then 'api' else 'code' end;

-- Refuses a tenant that is not the caller's, as if it were not there.
create or replace function mainspring.ensure_visible(tenant text)
returns void
language plpgsql stable
as $$
begin
    if not mainspring.is_visible(tenant) then
        perform mainspring.refuse('MS081', 'there is no tenant ' || quote_literal(tenant),
                                  jsonb_build_object('tenant_id', tenant));
    end if;
end
$$;

-- The state of a job that the caller may see; refuses any other as if it were not there.
create or replace function mainspring.visible_state(job_id bigint, tenant text)
returns mainspring.job_state
language plpgsql stable
as $$
declare
    found_state mainspring.job_state;
begin
    select job.state into found_state from mainspring.job_status as job
     where job.job_id = visible_state.job_id and job.tenant_id = visible_state.tenant;
    if found_state is null then
        perform mainspring.refuse('MS030',
            'there is no job ' || coalesce(visible_state.job_id::text, 'null'),
            jsonb_build_object('job_id', visible_state.job_id));
    end if;
    return found_state;
end
$$;

-- Writes down what was done to a job or the like by someone's request.
create or replace function mainspring.note_action(
    tenant text, action text, noun text, subject text, reason text, before jsonb, after jsonb)
returns void
language plpgsql
as $$
begin
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, reason, before, after)
    values (note_action.tenant, mainspring.actor(), note_action.action, note_action.noun,
            note_action.subject, note_action.reason, note_action.before, note_action.after);
end
$$;

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

-- What the API's role may touch; the rest it reaches through functions and views. Makes the role where
-- it is missing and may be made.
create or replace function mainspring.open_to_app()
returns void
language plpgsql
as $$
declare
    opened record;
begin
    if to_regrole('mainspring_app') is null then
        begin
            create role mainspring_app nologin;
        exception
            when duplicate_object or unique_violation then
                null;
            when insufficient_privilege then
                perform mainspring.refuse('MS083', 'the role mainspring_app is missing; let an '
                    || 'administrator run: create role mainspring_app nologin; grant '
                    || 'mainspring_app to ' || quote_ident(session_user), '{}');
        end;
    end if;
    if not pg_has_role(session_user, 'mainspring_app', 'member') then
        execute format('grant mainspring_app to %I', session_user);
    end if;
    grant usage on schema mainspring to mainspring_app;
    for opened in
        select format('grant select on mainspring.%I to mainspring_app', view.relname) as said
          from pg_catalog.pg_class as view
         where view.relnamespace = 'mainspring'::regnamespace and view.relkind = 'v'
           and view.relname not in ('bearers', 'unwalled_jobs')
           and not has_table_privilege('mainspring_app', view.oid, 'select')
        union all
        select format('grant %s on mainspring.%I to mainspring_app', asked.rights, asked.name)
          from (values
              ('audit', 'select'),
              ('clocks', 'select'),
              ('definitions', 'select'),
              ('definition_versions', 'select'),
              ('jobs', 'insert, select'),
              ('people', 'select, insert, update, delete'),
              ('replies', 'select, insert, update'),
              ('schedules', 'select, insert, update, delete'),
              ('tenants', 'select'),
              ('tokens', 'select, insert, update'),
              ('triggers', 'select, insert, update, delete'),
              ('workers', 'select')) as asked (name, rights)
         where not has_table_privilege('mainspring_app', 'mainspring.' || asked.name, 'select')
        union all
        select format('grant execute on function %s to mainspring_app', called.oid::regprocedure)
          from pg_catalog.pg_proc as called
         where called.pronamespace = 'mainspring'::regnamespace
           and not called.proname = any (array[
               'call_function', 'change_jobs', 'enter', 'open_to_app', 'remove_limit', 'set_limit'])
           and not has_function_privilege('mainspring_app', called.oid, 'execute')
    loop
        execute opened.said;
    end loop;
end
$$;
