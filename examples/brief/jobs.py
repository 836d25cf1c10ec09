"""A daily news brief: each slot runs once, and each job may run again without harm.

A slot is claimed by its row, so no two schedulers give it two jobs. A job whose worker was
killed runs again; what keeps that harmless is below: unique keys, and writes that commit
together with the job's success.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree.ElementTree import ParseError
from zoneinfo import ZoneInfo

import psycopg
from psycopg.types.json import Jsonb

from examples.brief.feeds import Article, fetch
from mainspring import Context, Mainspring

app = Mainspring()

ZONE = "America/New_York"
CLUSTERED_FOR = timedelta(days=2)
SHARED_WORDS = 3


@app.schedule(
    "*/15 * * * *",
    misfire_grace=timedelta(minutes=5),
    catch_up="latest",
    run_timeout=timedelta(minutes=10),
)
@app.job
def rss_ingestion(ctx: Context) -> dict[str, int]:
    """Fetch every feed; one that cannot be read does not keep the others from it."""
    with psycopg.connect(app.database.url, autocommit=True) as connection:
        feeds = [url for (url,) in connection.execute("select url from feeds order by url")]
        return {url: _ingest(ctx, connection, url) for url in feeds}


def _ingest(ctx: Context, connection: psycopg.Connection[Any], url: str) -> int:
    try:
        articles = fetch(url)
    except (OSError, ParseError) as error:
        ctx.log.warning("feed_unreadable", feed=url, error=str(error))
        return 0
    return sum(_store(connection, article) for article in articles)


def _store(connection: psycopg.Connection[Any], article: Article) -> int:
    return connection.execute(
        "insert into raw_articles (url, title) values (%s, %s) on conflict (url) do nothing",
        (article.url, article.title),
    ).rowcount


@app.schedule("5/15 * * * *", catch_up="latest", run_timeout=timedelta(minutes=10))
@app.job
async def event_clustering(ctx: Context) -> dict[str, int]:
    """Put each new article to the event it shares words with, or to one of its own."""
    async with ctx.transaction() as connection:
        articles = await (
            await connection.execute(
                "select id, title from raw_articles as article where not exists ("
                " select from cluster_articles where raw_article_id = article.id) order by id"
            )
        ).fetchall()
        for article_id, title in articles:
            cluster_id = await _cluster_for(connection, title)
            await _link(connection, cluster_id, article_id)
    return {"clustered": len(articles)}


async def _cluster_for(connection: Any, title: str) -> int:
    recent = await connection.execute(
        "select id, title from event_clusters where created_at > now() - %s order by id desc",
        (CLUSTERED_FOR,),
    )
    for cluster_id, known in await recent.fetchall():
        if len(_words(known) & _words(title)) >= SHARED_WORDS:
            return int(cluster_id)
    made = await connection.execute(
        "insert into event_clusters (title) values (%s) returning id", (title,)
    )
    return int((await made.fetchone())[0])


async def _link(connection: Any, cluster_id: int, article_id: int) -> None:
    await connection.execute(
        "with linked as (insert into cluster_articles values (%(cluster)s, %(article)s)"
        " on conflict do nothing returning cluster_id)"
        " update event_clusters set article_count = article_count + 1"
        " from linked where id = linked.cluster_id",
        {"cluster": cluster_id, "article": article_id},
    )


def _words(title: str) -> set[str]:
    return {word for word in title.lower().split() if len(word) > 3}


@app.schedule(
    "30 6 * * *",
    zone=ZONE,
    catch_up="all",
    catch_up_max_age=timedelta(days=3),
    payload={"events": 10},
)
@app.job
async def daily_brief(ctx: Context, events: int) -> dict[str, Any]:
    """Write the brief of the slot's day, with the largest events of the day before it."""
    slot_at = ctx.slot.at if ctx.slot else datetime.now(UTC)
    day = slot_at.astimezone(ZoneInfo(ZONE)).date()
    async with ctx.transaction() as connection:
        largest = await connection.execute(
            "select id, title, article_count from event_clusters"
            " where created_at between %(slot)s - interval '1 day' and %(slot)s"
            " order by article_count desc, id limit %(events)s",
            {"slot": slot_at, "events": events},
        )
        rows = await largest.fetchall()
        told = [{"title": title, "articles": count} for _, title, count in rows]
        written = await connection.execute(
            "insert into briefs values (%s, %s, %s) on conflict do nothing",
            (day, slot_at, Jsonb(told)),
        )
        if written.rowcount:
            await connection.cursor().executemany(
                "insert into brief_clusters values (%s, %s)", [(day, row[0]) for row in rows]
            )
    return {"day": str(day), "events": len(told), "is_new": written.rowcount == 1}


@app.schedule("45 3 * * *", zone=ZONE, payload={"days": 30})
@app.job
async def retention_cleanup(ctx: Context, days: int) -> dict[str, int]:
    """Remove old articles, except those that a brief tells of."""
    async with ctx.transaction() as connection:
        done = await connection.execute(
            "with old as ("
            " select article.id from raw_articles as article"
            "  where article.fetched_at < now() - make_interval(days => %s) and not exists ("
            "  select from cluster_articles as link join brief_clusters using (cluster_id)"
            "   where link.raw_article_id = article.id)"
            "), unlinked as ("
            " delete from cluster_articles where raw_article_id in (select id from old))"
            " delete from raw_articles where id in (select id from old)",
            (days,),
        )
    ctx.log.info("articles_removed", count=done.rowcount)
    return {"removed": done.rowcount}
