-- The audit: who changed what, whichever door was used. Only what differs is kept.

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
