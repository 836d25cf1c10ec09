-- Approvals: jobs that wait until enough of the right people say yes.

-- Asks for the approval of a job, anew if it was asked before.
create or replace function mainspring.ask_approval(
    job_id bigint, tenant text, defined mainspring.definitions
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
    delete from mainspring.votes as vote where vote.job_id = ask_approval.job_id;
    insert into mainspring.approvals as asked
        (job_id, tenant_id, needed, approvers, requested_at, expires_at)
    values (ask_approval.job_id, tenant, defined.approvals_needed, defined.approvers,
            clock_timestamp(), clock_timestamp() + defined.approval_expiry)
    on conflict (job_id) do update
       set needed = excluded.needed, approvers = excluded.approvers,
           requested_at = excluded.requested_at, expires_at = excluded.expires_at,
           decided_at = null, decision = null;
end
$$;

-- As which approvers the caller counts: its name, and its role as role:member and the like. The API
-- knows both by the token; a person on whose behalf a program or an operator acts is looked up.
create or replace function mainspring.approver_names(tenant text)
returns text[]
language plpgsql stable
as $$
declare
    shown text := nullif(current_setting('mainspring.approver', true), '');
    caller text := (nullif(current_setting('mainspring.identity', true), '')::text[])[1];
    who text := mainspring.actor();
begin
    if mainspring.is_program() and shown is not null and caller = who then
        return shown::text[];
    end if;
    return array(select who where who not like 'role:%')
        || array(select 'role:' || person.role from mainspring.people as person
                  where mainspring.is_program() and person.name = who and person.disabled_at is null
                    and coalesce(person.tenant_id, tenant) = tenant);
end
$$;

-- Whether the caller may decide. Where no approvers are named it is whoever may act for others,
-- which a member may not.
create or replace function mainspring.is_approver(approvers text[], tenant text)
returns boolean
language plpgsql stable
as $$
begin
    if approvers is null then
        return not mainspring.is_isolated()
            or coalesce(current_setting('mainspring.member', true), '') = '';
    end if;
    return approvers && mainspring.approver_names(tenant)
        or exists (select from unnest(approvers) as approver
                     join pg_catalog.pg_roles as role on role.rolname = approver
                    where mainspring.actor() = session_user
                      and mainspring.has_rights_of(session_user, role.rolname)
                      and not (select rolsuper from pg_catalog.pg_roles
                                where rolname = session_user));
end
$$;

-- As whom the caller votes, by kind and id, and by name: a person has one vote, by session, by
-- every token that they made, and through a program that acts in their name.
create or replace function mainspring.voter(tenant text, out id text, out name text)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    who text[] := mainspring.identity();
begin
    select 'person:' || person.person_id, person.name into id, name
      from mainspring.people as person
     where person.person_id = case when who[3] like 'person:%' then substr(who[3], 8)::bigint end
        or person.name = case when who[3] like 'name:%' then substr(who[3], 6) end
           and coalesce(person.tenant_id, tenant) = tenant
     order by person.tenant_id limit 1;
    id := coalesce(id, who[3]);
    name := coalesce(name, who[1]);
end
$$;

-- Of a name, itself, if it says who is meant by it. In a tenant it does not where an operator has
-- the same name: a definition that asks for the operator must not get whoever a tenant calls so.
create or replace function mainspring.own_name(name text, tenant text)
returns text[]
language sql stable
return case when tenant is not null
             and (exists (select from mainspring.people as person
                           where person.tenant_id is null and person.name = own_name.name)
                  or exists (select from mainspring.tokens as token
                              where token.tenant_id is null and token.name = own_name.name
                                and token.revoked_at is null and token.kind = 'token'))
            then '{}' else array[name] end;

-- The open approval of a job, locked; refuses one that is decided, or that is not for the caller. A
-- member finds jobs of others only where it is asked to decide.
create or replace function mainspring.lock_approval(job_id bigint, tenant text, target text)
returns mainspring.approvals
language plpgsql
as $$
#variable_conflict use_column
declare
    asked mainspring.approvals;
    found_job record;
    may_decide boolean;
begin
    select * into asked from mainspring.approvals as a
     where a.job_id = lock_approval.job_id and a.tenant_id = tenant for update;
    may_decide := asked.job_id is not null and mainspring.is_approver(asked.approvers, tenant);
    select job.state, job.created_by into found_job from mainspring.all_jobs as job
     where job.job_id = lock_approval.job_id and job.tenant_id = tenant;
    if found_job.state is null or not (may_decide or mainspring.is_own(found_job.created_by)) then
        perform mainspring.refuse_job(lock_approval.job_id);
    end if;
    if asked.job_id is null or found_job.state <> 'awaiting_approval'
       or asked.decided_at is not null or asked.expires_at <= clock_timestamp() then
        perform mainspring.refuse_move(lock_approval.job_id, found_job.state, target);
    end if;
    if not may_decide then
        asked.approvers := coalesce(asked.approvers, array['role:admin', 'role:operator']);
        perform mainspring.refuse('MS032', mainspring.actor() || ' may not decide on job '
            || lock_approval.job_id || '; ' || array_to_string(asked.approvers, ', ') || ' may',
            jsonb_build_object('job_id', lock_approval.job_id, 'actor', mainspring.actor(),
                               'approvers', asked.approvers));
    end if;
    return asked;
end
$$;

-- Writes to the audit how someone has voted, and what the job became by it.
create or replace function mainspring.note_vote(
    asked mainspring.approvals, action text, reason text, became mainspring.job_state)
returns void
language plpgsql
as $$
begin
    perform mainspring.note_action(
        asked.tenant_id, action, 'job', asked.job_id::text, nullif(reason, ''),
        jsonb_build_object('state', 'awaiting_approval'), jsonb_build_object('state', became));
end
$$;

-- Cancels jobs that nobody approved in time, of some jobs only if given. Leaves out what is set
-- aside. Returns how many approvals are settled by it.
create or replace function mainspring.expire_approvals(most integer, chosen bigint[] default null)
returns integer
language plpgsql
as $$
declare
    late mainspring.approvals;
    settled integer := 0;
begin
    for late in
        select * from mainspring.approvals as asked
         where asked.decided_at is null and asked.expires_at <= now()
           and (expire_approvals.chosen is null or asked.job_id = any (expire_approvals.chosen))
           and not exists (select from mainspring.set_aside as aside
                            where aside.duty = 'expire_approvals' and aside.key = asked.job_id
                              and aside.again_at > now())
         order by asked.expires_at limit most for update of asked skip locked
    loop
        update mainspring.jobs as job
           set cancel_requested_at = now(),
               last_error = 'nobody approved it before ' || to_char(
                   late.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')
         where job.job_id = late.job_id and job.state = 'awaiting_approval';
        if found then
            update mainspring.approvals as asked set decision = 'expired', decided_at = now()
             where asked.job_id = late.job_id;
            perform mainspring.settle_cancel(late.job_id);
        else
            update mainspring.approvals as asked set expires_at = null
             where asked.job_id = late.job_id;
        end if;
        settled := settled + 1;
    end loop;
    return settled;
end
$$;
