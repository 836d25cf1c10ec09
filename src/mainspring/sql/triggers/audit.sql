-- Records who changed what in mainspring.audit, for every table that people edit.

-- Records a change of a row. Its one argument is a JSON object:
--
--     noun       what the row is
--     subject    the column that names it
--     without    columns that are not recorded
--     nulls      whether columns that are null are recorded
--     switch     a column that switches it on and off, and what an update that does so is called
--     kept       columns that are another one's while it is switched off, by name
--     only       values of columns that a row must have to be recorded at all
create or replace function mainspring.audit_change()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
-- What one session records, others compare and read.
set timezone = 'UTC'
set intervalstyle = 'postgres'
as $$
declare
    options jsonb := tg_argv[0];
    stored jsonb := coalesce(to_jsonb(new), to_jsonb(old));
    was jsonb := mainspring.audited_columns(to_jsonb(old), options);
    is_now jsonb := mainspring.audited_columns(to_jsonb(new), options);
begin
    if was = is_now or not stored @> coalesce(options -> 'only', '{}') then
        return null;
    end if;
    insert into mainspring.audit (
        at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after)
    values (
        clock_timestamp(), coalesce(stored ->> 'tenant_id', ''), mainspring.actor(),
        (mainspring.identity())[2],
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete'
                   else mainspring.audited_action(was, is_now, options -> 'switch') end,
        options ->> 'noun', stored ->> (options ->> 'subject'),
        to_jsonb(new) ->> 'disabled_reason',
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger tokens_audit after insert or update or delete on mainspring.tokens
    for each row execute function mainspring.audit_change('{
        "noun": "token", "subject": "name", "nulls": true, "only": {"kind": "token"},
        "without": ["created_at", "last_used_at", "digest", "created_by", "created_by_id",
                    "person_id", "voter", "ends_by"],
        "switch": {"column": "revoked_at", "on": "revoke"}}');

create or replace trigger people_audit after insert or update or delete on mainspring.people
    for each row execute function mainspring.audit_change('{
        "noun": "person", "subject": "name", "nulls": true,
        "without": ["created_at", "last_seen_at", "created_by", "person_id"]}');

create or replace trigger tenants_audit after insert or update or delete on mainspring.tenants
    for each row execute function mainspring.audit_change('{
        "noun": "tenant", "subject": "tenant_id", "nulls": true,
        "without": ["created_at", "updated_at", "enabled_max_running"],
        "kept": {"max_running": "enabled_max_running"},
        "switch": {"column": "disabled_at", "on": "disable", "off": "enable"}}');

create or replace trigger limits_audit after insert or update or delete on mainspring.limits
    for each row execute function mainspring.audit_change('{
        "noun": "limit", "subject": "name", "nulls": true,
        "without": ["created_at", "updated_at"]}');

create or replace trigger definitions_audit after insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.audit_change('{
        "noun": "definition", "subject": "key", "nulls": false,
        "without": ["key", "version", "is_plain", "created_at", "updated_at", "secret_paths",
                    "schema_key"],
        "switch": {"column": "is_active", "on": "activate", "off": "deactivate"}}');

-- Of the columns that a person decides: the scheduler writes to the others all the time.
create or replace trigger schedules_audit after insert or delete or update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, overlap, catch_up, launcher, condition_sql, gauge_sql, gauge_lower,
    gauge_upper, gauge_bounds, condition_role, payload, definition, misfire_grace, max_running,
    catch_up_limit, catch_up_max_age, run_timeout, max_retries, description, queue, priority,
    max_attempts, condition_timeout, delivery
    on mainspring.schedules
    for each row execute function mainspring.audit_change('{
        "noun": "schedule", "subject": "name", "nulls": false,
        "without": ["schedule_id", "run_at", "created_at", "updated_at", "anchor_at",
                    "disabled_reason", "declared", "origin", "is_templated"],
        "switch": {"column": "enabled", "on": "enable", "off": "disable"}}');

create or replace trigger triggers_audit after insert or update or delete on mainspring.triggers
    for each row execute function mainspring.audit_change('{
        "noun": "trigger", "subject": "name", "nulls": false,
        "without": ["trigger_id", "created_at", "updated_at"],
        "switch": {"column": "is_enabled", "on": "enable", "off": "disable"}}');

-- Records who changed a policy. Its subject is the kind, and of jobs the state.
create or replace function mainspring.audit_retention()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
declare
    was jsonb := to_jsonb(old);
    is_now jsonb := to_jsonb(new);
    stored jsonb := coalesce(is_now, was);
begin
    if was -> 'keep' is not distinct from is_now -> 'keep' then
        return null;
    end if;
    perform mainspring.note_action(
        coalesce(stored ->> 'tenant_id', ''),
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete' else 'update' end,
        'retention', coalesce(stored ->> 'kind', concat_ws(':', 'jobs', stored ->> 'state')), null,
        jsonb_build_object('keep', was -> 'keep'), jsonb_build_object('keep', is_now -> 'keep'));
    return null;
end
$$;

create or replace trigger retention_audit after insert or update or delete on mainspring.retention
    for each row execute function mainspring.audit_retention();

create or replace trigger record_retention_audit after insert or update or delete
    on mainspring.record_retention
    for each row execute function mainspring.audit_retention();
