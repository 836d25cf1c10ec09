-- The audit: who changed what, whichever door was used. Only what differs is kept.

-- Whether the program itself is connected, and not someone with a login of their own.
create or replace function mainspring.is_program()
returns boolean
language sql stable
return pg_has_role(session_user, (select nspowner from pg_catalog.pg_namespace
                                   where nspname = 'mainspring'), 'MEMBER');

-- Who does something, for the audit and for votes. Only the program itself may speak for someone
-- else; whoever comes by a login of their own is that login.
create or replace function mainspring.actor()
returns text
language plpgsql stable
as $$
begin
    if mainspring.is_program() then
        return coalesce(nullif(current_setting('mainspring.actor', true), ''), session_user);
    end if;
    return session_user;
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

create or replace function mainspring.differing(facts jsonb, others jsonb)
returns jsonb
language sql immutable
return (select jsonb_object_agg(key, value) from jsonb_each(facts)
         where others -> key is distinct from value);

-- The same of something that enqueues a definition. What has changed is told by the real payload,
-- and kept without its secrets.
create or replace function mainspring.differing_shown(facts jsonb, others jsonb)
returns jsonb
language plpgsql stable
as $$
declare
    found jsonb := mainspring.differing(facts, others);
begin
    if found ? 'payload' then
        found := found || jsonb_build_object('payload', mainspring.shown_payload(
            facts ->> 'definition', facts -> 'payload'));
    end if;
    return found;
end
$$;
