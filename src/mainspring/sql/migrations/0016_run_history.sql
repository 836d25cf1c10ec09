-- What a run answered stays with its slot, which is kept for longer than its job.
--
-- works with: 0001

alter table mainspring.slots
    add column message text,
    add column details jsonb,
    -- Whether the details were too large to keep.
    add column is_details_omitted boolean not null default false;
