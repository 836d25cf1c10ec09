-- A daily news brief: feeds, their articles, the events they tell of, and the briefs.

create table if not exists feeds (
    url text primary key
);

create table if not exists raw_articles (
    id bigint generated always as identity primary key,
    url text not null unique,
    title text not null,
    fetched_at timestamptz not null default now()
);

create table if not exists event_clusters (
    id bigint generated always as identity primary key,
    title text not null,
    article_count integer not null default 0,
    created_at timestamptz not null default now()
);

create table if not exists cluster_articles (
    cluster_id bigint not null references event_clusters,
    raw_article_id bigint not null references raw_articles unique,
    primary key (cluster_id, raw_article_id)
);

-- Never changed once written.
create table if not exists briefs (
    day date primary key,
    slot_at timestamptz not null,
    events jsonb not null
);

create table if not exists brief_clusters (
    day date not null references briefs,
    cluster_id bigint not null references event_clusters,
    primary key (day, cluster_id)
);
