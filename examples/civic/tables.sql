-- Scheduled SQL functions: a function, a call that says when it runs, and no other code. Load it
-- with psql as the owner of the schema mainspring, then start `mainspring up`.

create schema if not exists civic;

create table if not exists civic.temporary_records (
    id bigint generated always as identity primary key,
    created_at timestamptz not null default now()
);

create or replace function civic.run_daily_cleanup()
returns jsonb
language plpgsql
as $$
declare
    deleted integer;
begin
    delete from civic.temporary_records where created_at < now() - interval '30 days';
    get diagnostics deleted = row_count;
    return jsonb_build_object(
        'success', true,
        'message', format('Deleted %s old records', deleted),
        'details', jsonb_build_object('deleted_count', deleted));
end
$$;

-- Stores the definition of the function and the schedule. One that is there, and may have been
-- changed since, is left as it is.
select mainspring.schedule_function(
    'daily_cleanup', 'civic.run_daily_cleanup', '0 3 * * *', 'America/New_York',
    description => 'Remove temporary records that are older than 30 days',
    on_conflict => 'nothing');
