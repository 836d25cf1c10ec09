"""The server: both sides of every bound."""

from datetime import date, timedelta

import pytest

from mainspring.domain.checks import server
from mainspring.domain.checks.server import Ages, Blocks, Checkpoints, Disk

GIB = 1024**3
MIB = 1024**2


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (150_000, date(2022, 9, 1)),
        (150_001, date(2022, 11, 15)),
        (150_002, date(2023, 2, 15)),
        (180_001, date(2025, 11, 15)),
        (180_005, date(2026, 11, 15)),
    ],
)
def test_minor_versions_come_out_every_quarter(version, expected):
    assert server.released_about(version) == expected


def test_a_minor_version_may_be_a_year_old():
    released = server.released_about(180_001)

    assert server.version(180_001, released + timedelta(days=365)) == []
    assert severities(server.version(180_001, released + timedelta(days=366))) == ["note"]


@pytest.mark.parametrize(("version", "expected"), [(149_999, ["critical"]), (150_000, [])])
def test_older_servers_than_15_are_refused(version, expected):
    assert severities(server.version(version, date(2022, 10, 1))) == expected


@pytest.mark.parametrize("name", ["autovacuum", "track_counts"])
def test_autovacuum_needs_both_settings(name):
    assert severities(server.autovacuum({name: "off"})) == ["critical"]
    assert server.autovacuum({name: "on"}) == []


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_durability_needs_both_settings(name):
    assert severities(server.durability({name: "off"})) == ["critical"]
    assert server.durability({name: "on"}) == []


@pytest.mark.parametrize(("value", "expected"), [("off", ["note"]), ("on", []), ("local", [])])
def test_commits_that_are_not_waited_for_are_noted(value, expected):
    assert severities(server.synchronous_commit({"synchronous_commit": value})) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (1_000_000_000, []),
        (1_000_000_001, ["warning"]),
        (1_600_000_000, ["warning"]),
        (1_600_000_001, ["critical"]),
    ],
)
def test_ids_must_not_run_out(age, expected):
    assert severities(server.id_ages(Ages(age, 0))) == expected
    assert severities(server.id_ages(Ages(0, age))) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.10, []), (0.11, ["warning"]), (0.50, ["warning"]), (0.51, ["critical"])],
)
def test_the_queue_of_notifications_must_not_fill(share, expected):
    assert severities(server.notification_queue(share)) == expected


@pytest.mark.parametrize("name", ["statement_timeout", "transaction_timeout"])
@pytest.mark.parametrize(
    ("value", "expected"), [("0", []), ("1", ["critical"]), ("59999", ["critical"]), ("60000", [])]
)
def test_timeouts_of_a_minute_are_long_enough(name, value, expected):
    assert severities(server.login_timeouts({name: value})) == expected


@pytest.mark.parametrize(
    ("timed", "requested", "expected"),
    [(0, 10, []), (0, 11, ["warning"]), (100, 100, []), (100, 101, ["warning"])],
)
def test_most_checkpoints_should_be_timed(timed, requested, expected):
    assert severities(server.checkpoints(Checkpoints(timed, requested))) == expected


@pytest.mark.parametrize(("buffers", "expected"), [(16_383, ["note"]), (16_384, []), (32_768, [])])
def test_memory_of_128_mib_is_enough(buffers, expected):
    found = server.buffers({"shared_buffers": str(buffers)}, Blocks(0, 0))

    assert severities(found) == expected


@pytest.mark.parametrize(
    ("hit", "read", "expected"),
    [(95_000, 5_000, []), (94_999, 5_001, ["note"]), (0, 99_999, [])],
)
def test_most_blocks_should_be_in_memory(hit, read, expected):
    assert severities(server.buffers({}, Blocks(hit, read))) == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [(15, []), (14, ["warning"]), (5, ["warning"]), (4, ["critical"])],
)
def test_a_disk_must_not_be_full(free, expected):
    assert severities(server.disk(Disk("/data", 100, free))) == expected
    assert server.disk(None) == []
