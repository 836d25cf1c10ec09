-- The vocabulary of a knowledge graph: relationship types, and the edges that use them.

create table if not exists relationship_types (
    name text primary key,
    category text not null,
    is_active boolean not null default true
);

create table if not exists edges (
    source text not null,
    target text not null,
    type text not null references relationship_types,
    primary key (source, target, type)
);

create or replace function shared_words(one text, other text)
returns bigint
language sql immutable
return (select count(*) from (select unnest(string_to_array(one, '_'))
                              intersect select unnest(string_to_array(other, '_'))) as word);

create or replace view vocabulary_figures as
select count(*) filter (where is_active) as active,
       count(*) filter (where not is_active) as inactive
  from relationship_types;

-- 60 types in use, 15 that are not, and two that a model made up.
insert into relationship_types (name, category, is_active)
select kind || '_' || number, kind, number <= 20
  from unnest(array['CAUSES', 'PRECEDES', 'CONTAINS']) as kind, generate_series(1, 25) as number
union all
values ('CAUSES_INDIRECTLY', 'llm_generated', true), ('RHYMES_WITH', 'llm_generated', true)
on conflict do nothing;

insert into edges (source, target, type)
select 'concept ' || row_number() over (order by name), 'concept 0', name from relationship_types
on conflict do nothing;
