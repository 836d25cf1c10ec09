-- Receipts: proof, in the transaction of a SQL function, that an attempt of a job did its work.

-- What a worker shows to write the receipt of one attempt. Keyed twice, as an HMAC is, with what
-- PostgreSQL has built in.
create or replace function mainspring.receipt_token(job_id bigint, fence bigint)
returns bytea
language sql stable
return (select sha256(secret.key || sha256(
                   secret.key || convert_to(job_id || ':' || fence, 'UTF8')))
          from mainspring.installation_keys as secret where secret.name = 'receipts');

-- Confirms that an attempt is still the newest of its job, and keeps it so until the transaction
-- ends; with a result it also writes the receipt. Called on a connection of another role, in its
-- transaction, so it believes nothing but the token. False means that the lease was lost.
create or replace function mainspring_calls.record_receipt(
    job_id bigint, fence bigint, token bytea, result text
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if token is distinct from mainspring.receipt_token(job_id, fence) then
        raise exception using errcode = 'insufficient_privilege',
            message = 'the token is not that of this attempt';
    end if;
    -- Locked, so that nobody takes the job back between this and the commit.
    perform from mainspring.jobs as job
      where job.job_id = record_receipt.job_id and job.fence = record_receipt.fence
        for no key update;
    if not found then
        return false;
    end if;
    if result is not null then
        insert into mainspring.receipts (job_id, fence, result)
        values (record_receipt.job_id, record_receipt.fence, record_receipt.result::jsonb);
    end if;
    return true;
end
$$;

-- Deletes receipts of jobs that have ended, and returns how many.
create or replace function mainspring.prune_receipts(most integer)
returns integer
language plpgsql
as $$
declare
    pruned integer;
begin
    delete from mainspring.receipts as receipt
     where receipt.job_id = any (array(
         select old.job_id from mainspring.receipts as old
          where not exists (select from mainspring.jobs as job where job.job_id = old.job_id)
          limit most));
    get diagnostics pruned = row_count;
    return pruned;
end
$$;
