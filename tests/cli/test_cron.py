"""`mainspring cron ...`: needs no database, so none is given."""

import json
from datetime import UTC, datetime, timedelta

from tests.support.commands import Done, mainspring, mainspring_each, sentence, table

NEW_YORK = ["--zone", "America/New_York"]
NIGHTLY = ["cron", "next", "30 2 * * *", *NEW_YORK]
FOLD = ["cron", "next", "30 1 * * *", *NEW_YORK, "--after", "2026-11-01", "--count", "3", "--json"]


def instants(done: Done) -> list[str]:
    assert (done.returncode, done.stderr) == (0, "")
    found: list[str] = json.loads(done.stdout)
    return found


def test_next_prints_a_json_list_of_utc_instants():
    done = mainspring(*NIGHTLY, "--after", "2026-03-07T12:00:00Z", "--count", "2", "--json")

    assert instants(done) == ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]


def test_next_prints_a_table_with_the_local_time_and_a_note():
    (done,) = mainspring_each([[*NIGHTLY, "--after", "2026-03-07T12:00:00Z", "--count", "2"]])
    moved, ordinary = table(done)

    assert moved == {
        "LOCAL": "2026-03-08 03:00:00-04:00",
        "UTC": "2026-03-08T07:00:00Z",
        "NOTE": "02:30 does not exist on this day; runs right after the gap",
    }
    assert list(ordinary.values()) == ["2026-03-09 02:30:00-04:00", "2026-03-09T06:30:00Z", ""]


def test_the_policies_are_options():
    skipped, once, both = mainspring_each(
        [
            [*NIGHTLY, "--after", "2026-03-08", "--count", "1", "--dst-gap", "skip", "--json"],
            FOLD,
            [*FOLD, "--dst-fold", "both"],
        ]
    )

    assert instants(skipped) == ["2026-03-09T06:30:00Z"]
    assert instants(once)[:2] == ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
    assert instants(both)[:2] == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]


FIRST_AFTER = {
    "2026-05-01T02:30:00Z": "2026-05-01T06:30:00Z",
    "2026-05-01T02:30:00-04:00": "2026-05-02T06:30:00Z",
    "2026-05-01T02:29:59.999999": "2026-05-01T06:30:00Z",
    "2026-05-01 02:30:00": "2026-05-02T06:30:00Z",
    "2026-05-01": "2026-05-01T06:30:00Z",
}


def test_an_instant_without_an_offset_is_in_the_zone():
    options = ["--count", "1", "--json"]
    answers = mainspring_each([[*NIGHTLY, "--after", after, *options] for after in FIRST_AFTER])

    assert [instants(done) for done in answers] == [[first] for first in FIRST_AFTER.values()]


def test_next_begins_now_with_ten_fires_in_utc():
    before = datetime.now(UTC)
    (done,) = mainspring_each([["cron", "next", "* * * * *", "--json"]])
    found = [datetime.fromisoformat(instant) for instant in instants(done)]

    minute = timedelta(minutes=1)
    assert found == [found[0] + number * minute for number in range(10)]
    assert before - minute < found[0] - minute <= datetime.now(UTC)


def test_next_gives_from_one_fire_to_a_thousand():
    least, most, too_few, too_many = mainspring_each(
        [
            ["cron", "next", "@hourly", "--json", "--count", f"{count}"]
            for count in (1, 1000, 0, 1001)
        ]
    )

    assert (len(instants(least)), len(instants(most))) == (1, 1000)
    for done in (too_few, too_many):
        assert (done.returncode, done.stdout) == (2, "")
        assert "Invalid value for '--count'" in done.stderr


def test_every_counts_from_the_start():
    after = ["--after", "2026-01-01T00:00:00.5Z", "--count", "2"]
    (done,) = mainspring_each([["cron", "next", "@every 90s", *after, "--json"]])

    assert instants(done) == ["2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"]


def test_h_is_chosen_from_the_spread_key():
    command = ["cron", "next", "H * * * *", "--after", "2026-01-01", "--count", "1", "--json"]
    chosen = mainspring_each([[*command, "--spread-key", key] for key in ("a", "a", "b")])

    first, again, other = (instants(done) for done in chosen)
    assert first == again
    assert first != other


def test_what_never_comes_is_an_empty_list():
    never = ["cron", "next", "30 2 * 3 SUN#2", *NEW_YORK, "--after", "2026-01-01"]
    listed, told = mainspring_each(
        [[*never, "--dst-gap", "skip", "--json"], [*never, "--dst-gap", "skip"]]
    )

    assert instants(listed) == []
    assert told.stderr == "No fires.\n"


def test_explain_prints_a_sentence():
    workdays, spread = mainspring_each(
        [["cron", "explain", "0 9 * * MON-FRI"], ["cron", "explain", "H(0-29)/10 2 * * 5L"]]
    )

    assert (workdays.stdout, workdays.returncode) == ("At 09:00, Monday to Friday\n", 0)
    assert spread.stdout.count("\n") == 1


WRONG = {
    "error: cron minute: 61 is not from 0 to 59": ["next", "61 * * * *"],
    "error: cron month: 'FOO' is not understood": ["explain", "0 0 1 FOO *"],
    "error: cron: '0 0 30 2 *' never matches": ["explain", "0 0 30 2 *"],
    "error: cron: is empty": ["next", ""],
    "error: zone: there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?": [
        "next",
        "@daily",
        "--zone",
        "Europe/Berln",
    ],
    "error: --after must be such as 2026-03-08T06:00:00Z or 2026-03-08, not 'soon'": [
        "next",
        "@daily",
        "--after",
        "soon",
    ],
    "error: --after must be in the years 1900 to 2999": ["next", "@daily", "--after", "9999-12-31"],
}


def test_a_mistake_is_one_sentence():
    answers = mainspring_each([["cron", *arguments] for arguments in WRONG.values()])

    for said, done in zip(WRONG, answers, strict=True):
        assert sentence(done).startswith(said)
        assert done.returncode == 2


def test_a_policy_that_does_not_exist_is_told_which_do():
    (done,) = mainspring_each([[*NIGHTLY, "--dst-gap", "jump"]])

    assert done.returncode == 2
    assert "'run_after', 'skip'" in done.stderr
