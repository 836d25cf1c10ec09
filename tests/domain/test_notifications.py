"""Notifications: a kind, a colon, and a subject."""

import re
from pathlib import Path

import pytest

import mainspring
from mainspring.domain.notifications import (
    InvalidNotification,
    NotificationKind,
    parse_notification,
)

SQL = Path(mainspring.__file__).parent / "sql"
NOTIFY = re.compile(r"pg_notify\('mainspring'")


def test_a_payload_is_a_kind_and_a_subject():
    assert parse_notification("ready:mail") == (NotificationKind.QUEUE_READY, "mail")


def test_a_subject_may_be_empty_or_hold_colons():
    assert parse_notification("limit:") == (NotificationKind.LIMIT_FREED, "")
    lane = '["a:b",100,"default",1,1]'
    assert parse_notification(f"lane:{lane}") == (NotificationKind.LANE_READY, lane)


@pytest.mark.parametrize("payload", ["", ":", "x:", "queue", "Ready:mail", "q:mail"])
def test_a_kind_that_is_not_known_is_none(payload: str):
    assert parse_notification(payload) is None


@pytest.mark.parametrize(
    "payload",
    [
        "limit:boo",
        "limit:[1,2,3]",
        'limit:["a","b"]',
        'limit:["a","b","\\u0000"]',
        'limit:["a","b","\\ud800"]',
        "limit:" + "[" * 5000,
        "lane:boo",
        'lane:["a",1,"b"]',
    ],
)
def test_a_subject_that_nobody_could_use_is_refused(payload: str):
    with pytest.raises(InvalidNotification):
        parse_notification(payload)


def test_a_limit_key_is_a_subject():
    key = '["api","acme","default"]'
    assert parse_notification(f"limit:{key}") == (NotificationKind.LIMIT_FREED, key)


def test_the_database_sends_the_kinds_that_are_known_and_no_others():
    sent = set()
    for path in SQL.glob("*/*.sql"):
        lines = path.read_text().splitlines()
        sending = lines if path.stem == "notifications" else filter(NOTIFY.search, lines)
        sent |= {kind for line in sending for kind in re.findall(r"'([a-z_]+):'", line)}

    assert sent == set(NotificationKind)
