-- Scheduled SQL functions: a function, a row that says when, and no other code.

create schema if not exists scheduled;

create table if not exists temporary_records (
    id bigint generated always as identity primary key,
    created_at timestamptz not null default now()
);

create or replace function scheduled.daily_cleanup()
returns jsonb
language plpgsql
as $$
declare
    deleted integer;
begin
    delete from temporary_records where created_at < now() - interval '30 days';
    get diagnostics deleted = row_count;
    return jsonb_build_object(
        'success', true,
        'message', format('Deleted %s old records', deleted),
        'details', jsonb_build_object('deleted_count', deleted));
end
$$;

insert into mainspring.schedules (name, description, definition, payload, cron, zone)
values ('daily_cleanup', 'Remove temporary records that are older than 30 days',
        'sql_function', '{"function": "daily_cleanup"}', '0 3 * * *', 'America/New_York')
    on conflict do nothing;
