-- The audit: who changed what, through whichever interface. Only what differs is kept.

-- Who does something, for the audit and for votes. Only the program itself may act for someone
-- else; whoever has a login of their own is that login.
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

-- The same by name, by kind and id, and as whom it votes. Kinds: person and token for callers of
-- the API, sql for a database login, system for Mainspring itself, and name for someone in whose
-- name a program acts without our knowing who that is. The setting counts only for the name it was
-- made with: whoever acts for someone else after it is no longer the caller.
create or replace function mainspring.identity()
returns text[]
language plpgsql stable
as $$
declare
    who text := mainspring.actor();
    shown text[];
begin
    if not mainspring.is_program() then
        return array[who, 'sql:' || who, 'sql:' || who];
    end if;
    shown := nullif(current_setting('mainspring.identity', true), '')::text[];
    if shown[1] = who then
        return shown;
    end if;
    return case when coalesce(current_setting('mainspring.actor', true), '') = ''
                then array[who, 'sql:' || who, 'sql:' || who]
                when who = 'scheduler' then array[who, 'system', 'system']
                else array[who, 'name:' || who, 'name:' || who] end;
end
$$;

-- Records what was done on request to something whose changes no trigger records, such as a job.
create or replace function mainspring.note_action(
    tenant text, action text, noun text, subject text, reason text, before jsonb, after jsonb)
returns void
language plpgsql
as $$
begin
    insert into mainspring.audit (
        at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after)
    values (clock_timestamp(), note_action.tenant, mainspring.actor(), (mainspring.identity())[2],
            note_action.action, note_action.noun, note_action.subject, note_action.reason,
            note_action.before, note_action.after);
end
$$;

-- Of a row that is switched off the values that columns will have again, kept by other columns.
create or replace function mainspring.kept_columns(stored jsonb, options jsonb)
returns jsonb
language sql immutable
return (select coalesce(jsonb_object_agg(name, stored -> keeper), '{}')
          from jsonb_each_text(coalesce(options -> 'kept', '{}')) as pair (name, keeper)
         where stored ->> (options -> 'switch' ->> 'column') is not null);

-- The columns of a row that the audit keeps, by the options of mainspring.audit_change. A row that
-- is not there has none.
create or replace function mainspring.audited_columns(stored jsonb, options jsonb)
returns jsonb
language sql immutable
return (select coalesce(jsonb_object_agg(name, value), '{}')
          from jsonb_each(stored || mainspring.kept_columns(stored, options)) as part (name, value)
         where not options -> 'without' ? name
           and (value <> 'null' or (options -> 'nulls')::boolean));

-- What an update of a row is called: by the column that switches the thing on and off, if it does.
create or replace function mainspring.audited_action(was jsonb, is_now jsonb, switch jsonb)
returns text
language sql immutable
return (
    select case when not was_on and is_on then coalesce(switch ->> 'on', 'update')
                when was_on and not is_on then coalesce(switch ->> 'off', 'update')
                else 'update' end
      from (select coalesce(was -> (switch ->> 'column') not in ('null', 'false'), false) as was_on,
                   coalesce(is_now -> (switch ->> 'column') not in ('null', 'false'), false)
                       as is_on) as state);

-- The columns whose value is another in the other row. A payload is compared as it is, and kept
-- without its secrets.
create or replace function mainspring.differing(facts jsonb, others jsonb)
returns jsonb
language plpgsql stable
as $$
begin
    return (
        select jsonb_object_agg(name, case when name = 'payload'
                   then mainspring.shown_payload(facts ->> 'definition', value) else value end)
          from jsonb_each(facts) as part (name, value)
         where others -> name is distinct from value);
end
$$;
