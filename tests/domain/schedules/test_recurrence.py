"""Rhythms: the same slots as instants and as what a clock shows."""

from datetime import UTC, datetime

import pytest

from mainspring.domain.schedules.cron import DstGap, find_zone, parse
from mainspring.domain.schedules.recurrence import Recurrence

BERLIN = find_zone("Europe/Berlin")  # 2026: gap 03-29 02:00 to 03:00, fold 10-25 03:00 to 02:00
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def local_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def first_local_time(recurrence: Recurrence, start: str, end: str) -> str | None:
    found = recurrence.first_local_time(local_time(start), local_time(end))
    return f"{found:%m-%d %H:%M}" if found else None


def every(minutes: int, anchor: str) -> Recurrence:
    return Recurrence(BERLIN, parse(f"@every {minutes}m"), anchor_at=datetime.fromisoformat(anchor))


def test_a_stretch_of_walls_holds_its_start_and_not_its_end():
    daily = Recurrence(BERLIN, parse("0 9 * * *"))

    assert first_local_time(daily, "2026-03-02T09:00", "2026-03-02T09:01") == "03-02 09:00"
    assert first_local_time(daily, "2026-03-02T09:01", "2026-03-03T09:00") is None


def test_an_expression_names_walls_that_the_clock_skips():
    daily = Recurrence(BERLIN, parse("30 2 * * *"))

    assert first_local_time(daily, "2026-03-29T00:00", "2026-03-30T00:00") == "03-29 02:30"


def test_a_date_has_the_wall_that_the_clock_shows_then():
    once = Recurrence(BERLIN, at=NOON)

    assert first_local_time(once, "2026-03-02T00:00", "2026-03-03T00:00") == "03-02 13:00"
    assert first_local_time(once, "2026-03-02T13:01", "2026-03-03T00:00") is None
    assert once.next_after(NOON) is None


def test_an_interval_skips_what_the_clock_skips():
    half_hourly = every(30, "2026-03-29T00:00Z")

    assert first_local_time(half_hourly, "2026-03-29T01:31", "2026-03-29T02:59") is None
    assert first_local_time(half_hourly, "2026-03-29T01:31", "2026-03-29T04:00") == "03-29 03:00"


def test_the_earliest_wall_of_an_interval_may_be_in_the_second_showing():
    """Every 45 minutes: 02:00 and 02:45, then the clock is put back and shows 02:30."""
    recurrence = every(45, "2026-10-25T00:00Z")

    assert first_local_time(recurrence, "2026-10-25T02:15", "2026-10-25T03:00") == "10-25 02:30"


@pytest.mark.parametrize(
    ("expression", "runs_after"),
    [("30 2 * * *", True), ("30 * * * *", False), ("@every 30m", True)],
)
def test_who_runs_after_gaps_by_policy(expression, runs_after):
    """An expression of every hour has no fixed time that could be lost."""
    assert Recurrence(BERLIN, parse(expression)).runs_after_gaps is runs_after
    assert not Recurrence(BERLIN, parse(expression), gap=DstGap.SKIP).runs_after_gaps


def test_a_date_runs_after_gaps():
    assert Recurrence(BERLIN, at=NOON).runs_after_gaps
