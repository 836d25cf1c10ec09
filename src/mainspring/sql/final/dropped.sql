-- What earlier versions created and this one does not have.
drop view if exists mainspring.unwalled_jobs;

-- With the triggers that are theirs alone; the others have another function by now.
drop function if exists mainspring.audit_bearer(), mainspring.audit_definition(),
    mainspring.audit_schedule(), mainspring.audit_tenant(), mainspring.audit_trigger(),
    mainspring.note_limit() cascade;
drop function if exists mainspring.definition_facts(mainspring.definitions),
    mainspring.trigger_facts(mainspring.triggers), mainspring.differing_shown(jsonb, jsonb),
    mainspring.cron_limits(integer);
drop function if exists mainspring.announce(text, integer, text, bigint, timestamptz),
    mainspring.check_enqueue(jsonb, integer, integer, interval, timestamptz, timestamptz, interval),
    mainspring.message_for(text, timestamptz), mainspring.tell_busy(text, integer, text, bigint),
    mainspring.room_of(mainspring.definitions, text, jsonb, text),
    mainspring.wake(text, timestamptz), mainspring.wake_for(mainspring.jobs),
    mainspring.wake_limits(text, text, text);
