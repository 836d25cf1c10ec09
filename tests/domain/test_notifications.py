"""Notifications: a kind, a colon, and a subject."""

import re
from pathlib import Path

import pytest

import mainspring
from mainspring.domain.notifications import NotificationKind, parse_notification

SQL = Path(mainspring.__file__).parent / "sql"
NOTIFY = re.compile(r"pg_notify\('mainspring'")


def test_a_payload_is_a_kind_and_a_subject():
    assert parse_notification("ready:mail") == (NotificationKind.QUEUE_READY, "mail")


def test_a_subject_may_be_empty_or_hold_colons():
    assert parse_notification("limit:") == (NotificationKind.LIMIT_FREED, "")
    assert parse_notification('lane:["a:b"]') == (NotificationKind.LANE_READY, '["a:b"]')


@pytest.mark.parametrize("payload", ["", ":", "x:", "queue", "Ready:mail", "q:mail"])
def test_a_kind_that_is_not_known_is_none(payload: str):
    assert parse_notification(payload) is None


def test_the_database_sends_the_kinds_that_are_known_and_no_others():
    sent = set()
    for path in SQL.glob("*/*.sql"):
        lines = path.read_text().splitlines()
        sending = lines if path.stem == "notifications" else filter(NOTIFY.search, lines)
        sent |= {kind for line in sending for kind in re.findall(r"'([a-z_]+):'", line)}

    assert sent == set(NotificationKind)
