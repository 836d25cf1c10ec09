-- Sessions: made by a login that is used once, and ended by whoever may.

-- Adds a login of a person; false if there is no such person for the caller. A login link of
-- someone is recorded, a login through a provider only when it is used. A session by it, and what
-- is made in that session, ends by `ends_by`, if that is given.
create or replace function mainspring.open_login(
    person bigint, prefix text, digest bytea, life interval, ends_by timestamptz, is_link boolean,
    tenant text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    someone mainspring.people;
    who text[] := case when is_link then mainspring.identity()
                       else array['provider', 'system'] end;
begin
    perform mainspring.ensure_visible(tenant);
    select * into someone from mainspring.people as p
     where p.person_id = open_login.person and p.disabled_at is null
       and p.tenant_id is not distinct from tenant and mainspring.is_visible(p.tenant_id);
    if someone.person_id is null then
        return false;
    end if;
    insert into mainspring.tokens (
        kind, name, prefix, digest, role, tenant_id, expires_at, person, person_id, created_by,
        created_by_id, ends_by)
    values ('login', someone.name, open_login.prefix, open_login.digest, someone.role,
            someone.tenant_id, least(now() + life, open_login.ends_by), someone.name,
            someone.person_id, who[1], who[2], open_login.ends_by);
    if is_link then
        perform mainspring.note_action(coalesce(someone.tenant_id, ''), 'create', 'login_link',
                                       someone.name, null, null, null);
    end if;
    return true;
end
$$;

-- Trades a login for a session; null if it is unknown, used or too old. The audit says who made the
-- link.
create or replace function mainspring.use_login(
    login bytea, prefix text, digest bytea, life interval)
returns text
language plpgsql
as $$
#variable_conflict use_column
declare
    used mainspring.tokens;
    someone mainspring.people;
begin
    delete from mainspring.tokens as t
     where t.digest = use_login.login and t.kind = 'login' and t.expires_at > now()
       and t.revoked_at is null
    returning * into used;
    update mainspring.people as person set last_seen_at = now()
     where person.person_id = used.person_id and person.disabled_at is null
    returning * into someone;
    if someone.person_id is null then
        return null;
    end if;
    insert into mainspring.tokens (
        kind, name, prefix, digest, role, tenant_id, expires_at, person, person_id, created_by,
        created_by_id, ends_by)
    values ('session', someone.name, use_login.prefix, use_login.digest, someone.role,
            someone.tenant_id, least(now() + life, used.ends_by), someone.name, someone.person_id,
            used.created_by, used.created_by_id, used.ends_by);
    perform mainspring.note_session(someone, 'login', jsonb_build_object(
        'link_by', used.created_by, 'link_by_id', used.created_by_id));
    return someone.name;
end
$$;

-- Ends a session, as its person, or a console.
create or replace function mainspring.log_out(digest bytea)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    ended mainspring.tokens;
    someone mainspring.people;
begin
    delete from mainspring.tokens as t
     where t.digest = log_out.digest and t.kind in ('session', 'console')
    returning * into ended;
    select * into someone from mainspring.people as person
     where person.person_id = ended.person_id and ended.kind = 'session';
    if someone.person_id is not null then
        perform mainspring.note_session(someone, 'logout', null);
    end if;
end
$$;

-- Records what someone did who has no session yet, or none any more.
create or replace function mainspring.note_session(
    person mainspring.people, action text, after jsonb)
returns void
language sql
as $$
insert into mainspring.audit (tenant_id, actor, actor_id, action, noun, subject, after)
values (coalesce(person.tenant_id, ''), person.name, 'person:' || person.person_id,
        note_session.action, 'session', person.name, note_session.after)
$$;

-- Ends sessions of a person: one, or all if none is given. Returns how many there were.
create or replace function mainspring.end_sessions(person bigint, session bigint, tenant text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    ended mainspring.tokens;
    total bigint := 0;
begin
    perform mainspring.ensure_visible(tenant);
    for ended in
        delete from mainspring.tokens as t
         where t.person_id = end_sessions.person and t.kind = 'session'
           and t.token_id = coalesce(end_sessions.session, t.token_id)
           and t.tenant_id is not distinct from tenant and mainspring.is_visible(t.tenant_id)
        returning *
    loop
        perform mainspring.note_action(coalesce(ended.tenant_id, ''), 'end', 'session', ended.name,
                                       null, null, null);
        total := total + 1;
    end loop;
    return total;
end
$$;
