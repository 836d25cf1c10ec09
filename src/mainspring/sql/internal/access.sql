-- Tenant isolation. A request of the API runs as a role of its own, with its tenant, and the member
-- whose own jobs are meant, as settings of the transaction; any other connection sees all.
-- Row-level security calls is_visible on every table with a tenant. Views and functions that run
-- with the owner's rights, to which it does not apply, call it themselves.
--
-- The role is pg_database_owner, which PostgreSQL has in every database and which only the owner of
-- the database may become: it has no rights on our tables but those given to it below. So no role
-- is made that the whole cluster would see. For a login that does not own its database it is
-- mainspring_app, and for installations that have used that from before.

-- Whether this is a request of the API by someone who is no operator.
create or replace function mainspring.is_isolated()
returns boolean
language sql stable
return current_setting('role') in ('pg_database_owner', 'mainspring_app');

-- A caller of the API sees what belongs to its tenant; everyone else sees everything.
create or replace function mainspring.is_visible(tenant text)
returns boolean
language sql stable
return not mainspring.is_isolated()
       or coalesce(current_setting('mainspring.tenant', true), '') = tenant;

-- Of jobs and flows a member sees only those it created.
create or replace function mainspring.is_own(creator text)
returns boolean
language sql stable
return not mainspring.is_isolated()
       or coalesce(current_setting('mainspring.member', true), '') in ('', creator);

-- Who the bearer of a valid token is; no row for any other. A session has the role of its person,
-- a token its own. `approver` is as which approvers it counts: by role, by its own name, unless
-- that is a person's, and as the person whose it is. `voter` is as whom it votes. It is no view,
-- since an upgrade replaces those after the functions that need them.
create or replace function mainspring.bearer_of(
    digest bytea, out token_id bigint, out kind text, out role text, out tenant_id text,
    out scopes text[], out actor text, out approver text[], out actor_id text, out voter text,
    out person_id bigint, out person text, out ends_by timestamptz, out tenants text[])
returns setof record
language sql stable
as $$
select token.token_id, token.kind, held.role, token.tenant_id, token.scopes, held.actor,
       case when held.role in ('operator', 'admin', 'member') then
           array['role:' || held.role]
           || case when token.kind = 'token' and not exists (
                       select from mainspring.people as other
                        where other.name = token.name
                          and other.tenant_id is not distinct from token.tenant_id)
                   then mainspring.own_name(token.name, token.tenant_id) end
           || case when person.person_id is not null
                   then mainspring.own_name(person.name, person.tenant_id) end
       end,
       case token.kind when 'session' then 'person:' || token.person_id
                       when 'console' then 'sql:' || token.created_by
                       else 'token:' || token.token_id end,
       case when person.person_id is not null then 'person:' || person.person_id
            when token.kind = 'console' then 'sql:' || token.created_by
            else coalesce(token.voter, 'token:' || token.token_id) end,
       person.person_id, person.name,
       case token.kind when 'token' then token.expires_at else token.ends_by end, token.tenants
  from mainspring.tokens as token
  left join mainspring.people as person on person.person_id = token.person_id
 cross join lateral (
    select case token.kind when 'session' then person.role else token.role end as role,
           case token.kind when 'session' then person.name when 'console' then token.created_by
                           else token.name end as actor) as held
 where token.digest = bearer_of.digest and token.kind <> 'login' and held.role is not null
   and token.revoked_at is null and person.disabled_at is null
   and not exists (select from mainspring.tenants as owner
                    where owner.tenant_id = token.tenant_id and owner.disabled_at is not null)
   and (token.expires_at is null or token.expires_at > now())
$$;

-- The same for programs of the release before, which take a token without a tenant to be for all of
-- them: one for several tenants lets nobody in there.
create or replace function mainspring.bearer(
    digest bytea, out token_id bigint, out kind text, out role text, out tenant_id text,
    out scopes text[], out actor text, out approver text[], out actor_id text, out voter text,
    out person_id bigint, out person text, out ends_by timestamptz)
returns setof record
language sql stable
as $$
select token_id, kind, role, tenant_id, scopes, actor, approver, actor_id, voter, person_id, person,
       ends_by
  from mainspring.bearer_of(digest)
 where tenants is null
$$;

-- Why a token lets nobody in, for whoever has it: nobody else learns that a tenant is disabled.
create or replace function mainspring.why_no_bearer(digest bytea)
returns text
language sql stable
return coalesce(
    (select 'the tenant ' || quote_literal(owner.tenant_id) || ' is disabled; ask an operator to '
            || 'enable it'
       from mainspring.tokens as token
       join mainspring.tenants as owner using (tenant_id)
       left join mainspring.people as person on person.person_id = token.person_id
      where token.digest = why_no_bearer.digest and token.kind <> 'login'
        and owner.disabled_at is not null and person.disabled_at is null
        and token.revoked_at is null
        and (token.expires_at is null or token.expires_at > now())),
    'the token is unknown, expired or revoked');

-- Authenticates the bearer of a token for the rest of the transaction. An operator has no tenant
-- and is not isolated. Returns true, so that a statement can make the rest of itself wait for it.
create or replace function mainspring.enter(digest bytea)
returns boolean
language plpgsql
as $$
declare
    shown record;
begin
    select * into shown from mainspring.bearer_of(enter.digest);
    if shown.token_id is null then
        perform mainspring.refuse('MS080', mainspring.why_no_bearer(enter.digest), '{}');
    end if;
    perform set_config('mainspring.actor', shown.actor, true),
            set_config('mainspring.creator', shown.actor, true),
            set_config('mainspring.identity',
                       array[shown.actor, shown.actor_id, shown.voter]::text, true),
            set_config('mainspring.approver', coalesce(shown.approver::text, ''), true);
    if shown.role is distinct from 'operator' then
        -- A worker of several tenants sees no tenant's data but the jobs that it claims.
        perform set_config('mainspring.tenant', coalesce(shown.tenant_id, ''), true),
                set_config('mainspring.member',
                           case when shown.role = 'member' then shown.actor else '' end, true),
                set_config('role', mainspring.app_role(), true);
    end if;
    return true;
end
$$;

-- Refuses a tenant that is not the caller's with the error for one that does not exist.
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

-- Whether a role may become another by SET ROLE. Before PostgreSQL 16 every member may. Since then
-- a role with CREATEROLE is a member of the roles it creates, with the right to grant them and
-- without the right to become them.
create or replace function mainspring.may_set_role(member name, role name)
returns boolean
language plpgsql stable
as $$
begin
    return pg_has_role(member, role, case when current_setting('server_version_num')::integer
                                               >= 160000 then 'SET' else 'MEMBER' end);
end
$$;

-- Whether a role has the rights of another, by inheritance or by SET ROLE. Since PostgreSQL 16 a
-- member may have neither.
create or replace function mainspring.has_rights_of(member name, role name)
returns boolean
language plpgsql stable
as $$
begin
    return pg_has_role(member, role, 'USAGE') or mainspring.may_set_role(member, role);
end
$$;

-- Whether whoever writes a row right now has the rights of the owner of Mainspring.
create or replace function mainspring.acts_as_owner()
returns boolean
language plpgsql stable
as $$
begin
    return (select mainspring.has_rights_of(current_user, pg_get_userbyid(own.nspowner))
              from pg_catalog.pg_namespace as own where own.nspname = 'mainspring');
end
$$;

-- The role that requests of the current login run as, once it is open to them.
create or replace function mainspring.app_role()
returns name
language plpgsql stable
as $$
begin
    -- Asked one by one: the last two fail where there is no such role.
    if to_regrole('mainspring_app') is not null then
        if mainspring.may_set_role(session_user, 'mainspring_app') then
            if has_schema_privilege('mainspring_app', 'mainspring', 'usage') then
                return 'mainspring_app';
            end if;
        end if;
    end if;
    return 'pg_database_owner';
end
$$;

-- The statement by which an administrator lets a role become another.
create or replace function mainspring.grant_of(role name, member name)
returns text
language plpgsql stable
as $$
begin
    return format('grant %I to %I', role, member)
        || case when current_setting('server_version_num')::integer >= 160000
                then ' with set true' else '' end;
end
$$;

-- Creates the role mainspring_app where it is missing, and lets the current user become it.
create or replace function mainspring.ensure_app_role()
returns void
language plpgsql
as $$
begin
    if to_regrole('mainspring_app') is null then
        begin
            create role mainspring_app nologin;
        exception
            when duplicate_object or unique_violation then
                null;
            when insufficient_privilege then
                perform mainspring.refuse('MS083', format('%I does not own this database and may '
                    || 'not create the role that requests run as; ask an administrator to run: '
                    || 'create role mainspring_app nologin; %s', session_user,
                    mainspring.grant_of('mainspring_app', session_user)), '{}');
        end;
    end if;
    if not mainspring.may_set_role(session_user, 'mainspring_app') then
        begin
            execute mainspring.grant_of('mainspring_app', session_user);
        exception
            when insufficient_privilege then
                perform mainspring.refuse('MS083', format('%I does not own this database and may '
                    || 'not become the role mainspring_app, which requests run as; ask an '
                    || 'administrator to run: %s', session_user,
                    mainspring.grant_of('mainspring_app', session_user)), '{}');
        end;
    end if;
end
$$;

-- What the API's role has to be granted: the tables, views and functions that it uses itself; the
-- rest it reaches through these.
create or replace function mainspring.missing_app_grants(app name)
returns setof text
language sql stable
as $$
select format('grant usage on schema mainspring to %I', app)
 where not has_schema_privilege(app, 'mainspring', 'usage')
union all
select format('grant select on mainspring.%I to %I', view.relname, app)
  from pg_catalog.pg_class as view
 where view.relnamespace = 'mainspring'::regnamespace and view.relkind = 'v'
   and view.relname not in ('bearers', 'all_jobs')
   and not has_table_privilege(app, view.oid, 'select')
union all
select format('grant %s on mainspring.%I to %I', used.rights, used.name, app)
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
      ('workers', 'select')) as used (name, rights)
 where not has_table_privilege(app, 'mainspring.' || used.name, 'select')
union all
select format('grant execute on function %s to %I', called.oid::regprocedure, app)
  from pg_catalog.pg_proc as called
 where called.pronamespace = 'mainspring'::regnamespace
   and not called.proname = any (array[
       'app_role', 'ask_as_reader', 'bearer', 'bearer_of', 'call_function', 'change_jobs',
       'delete_from_tenant', 'delete_rest_of_tenant', 'ensure_app_role', 'enter',
       'log_out', 'missing_app_grants', 'open_to_app', 'pause_queue', 'receipt_token',
       'remove_limit', 'resume_queue', 'set_limit', 'start_tenant_deletion', 'use_login'])
   and not has_function_privilege(app, called.oid, 'execute')
$$;

-- Makes sure of the role that requests of the current login run as, and of its rights.
create or replace function mainspring.open_to_app()
returns void
language plpgsql
as $$
declare
    app name := mainspring.app_role();
    missing text;
begin
    if not mainspring.may_set_role(session_user, app) then
        perform mainspring.ensure_app_role();
        app := 'mainspring_app';
    end if;
    for missing in select mainspring.missing_app_grants(app) loop
        execute missing;
    end loop;
end
$$;
