"""The daily brief: slots that run once, and jobs that may run again without harm."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest

from examples.brief.feeds import Article, parse
from tests.support.schedules import is_planned, make_due, scheduler_processes, slots
from tests.support.waiting import wait_until

ITEM = "<item><link>https://news.example/{}</link><title>{}</title></item>"
TITLES = (
    "Harbour bridge closed after storm damage",
    "Storm damage keeps harbour bridge closed for weeks",
    "Parliament votes on the budget",
)
FEED = "<rss><channel>{}</channel></rss>".format(
    "".join(ITEM.format(number, title) for number, title in enumerate(TITLES))
)


class Feed(BaseHTTPRequestHandler):
    """Answers every path but /broken with the feed."""

    def do_GET(self) -> None:
        is_broken = self.path == "/broken"
        self.send_response(500 if is_broken else 200)
        self.end_headers()
        self.wfile.write(b"" if is_broken else FEED.encode())

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - the name is the base's
        """Say nothing."""


@pytest.fixture
def website() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def brief(
    start: Callable[[str], None], connection: psycopg.Connection, website: str
) -> psycopg.Connection:
    """The example at work, with a feed that can be read and two that cannot."""
    start("brief")
    connection.execute(
        "insert into feeds select unnest(%s::text[])",
        ([f"{website}/news", f"{website}/broken", "file:///etc/passwd"],),
    )
    return connection


def test_an_article_is_kept_once_however_often_it_is_fetched(brief, trigger):
    runs = [trigger("rss_ingestion"), trigger("rss_ingestion")]

    assert [run["run_state"] for run in runs] == ["succeeded", "succeeded"]
    assert brief.execute("select count(*) from raw_articles").fetchone() == (3,)


def test_articles_of_one_event_come_together(brief, trigger):
    for name in ("rss_ingestion", "event_clustering", "event_clustering"):
        trigger(name)

    found = brief.execute("select title, article_count from event_clusters order by id").fetchall()
    assert found == [(TITLES[0], 2), (TITLES[2], 1)]


def test_what_a_brief_tells_of_is_not_cleaned_up(brief, trigger):
    for name in ("rss_ingestion", "event_clustering"):
        trigger(name)
    trigger("daily_brief")
    brief.execute("insert into raw_articles (url, title) values ('https://old.example', 'Old')")
    brief.execute("update raw_articles set fetched_at = now() - interval '31 days'")

    trigger("retention_cleanup")

    assert brief.execute("select count(*) from raw_articles").fetchone() == (3,)


def test_three_schedulers_write_one_brief_for_a_slot(brief, database_url, tmp_path):
    with scheduler_processes(database_url, tmp_path) as start_scheduler:
        for scheduler in [start_scheduler("examples.brief.jobs:app") for _ in range(2)]:
            scheduler.started()
        brief.execute("update mainspring.schedules set paused_until = null where name ~ 'brief'")
        wait_until(lambda: is_planned(brief, "daily_brief"))
        make_due(brief, "daily_brief")
        wait_until(lambda: brief.execute("select from briefs").fetchone() is not None, 20)

        assert [slot["outcome"] for slot in slots(brief, "daily_brief")] == ["enqueued"]
        assert brief.execute(
            "select count(*) from mainspring.job_status where definition = 'daily_brief'"
        ).fetchone() == (1,)


def test_items_without_a_link_or_a_title_are_left_out():
    text = b"<rss><item><title>a</title></item><item><link> b </link><title>c</title></item></rss>"

    assert parse(text) == [Article("b", "c")]
