"""Expressions in English."""

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron import explain

NAME = "chosen from the schedule's name"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0-59/15 * * * *", "Every 15 minutes"),
        ("*/7 * * * *", "Every hour, at minutes 0 to 56 in steps of 7"),
        ("5 * * * *", "Every hour, at minute 5"),
        ("5,10,20-30 * * * *", "Every hour, at minutes 5, 10 and 20 to 30"),
        ("5 */2 * * *", "Every 2 hours, at minute 5"),
        ("*/5 */2 * * *", "In hours 0 to 22 in steps of 2, every 5 minutes"),
        ("30 2 * * *", "At 02:30 every day"),
        ("0 */6 * * *", "At 00:00, 06:00, 12:00 and 18:00 every day"),
        ("0 8-18/2 * * *", "Every 2 hours from 08:00 to 18:00 every day"),
        ("5 9-17 * * *", "Every hour from 09:05 to 17:05 every day"),
        ("* 9-17 * * *", "Every minute from 09:00 to 17:59 every day"),
        ("*/15 9-17 * * *", "Every 15 minutes from 09:00 to 17:45 every day"),
        ("10-20 2 * * *", "Every minute from 02:10 to 02:20 every day"),
        ("10-50/5 2 * * *", "Every 5 minutes from 02:10 to 02:50 every day"),
        ("5,7 3,7,9 * * *", "In hours 3, 7 and 9, at minutes 5 and 7, every day"),
        ("5,7 3,7,9 * * 1-5", "In hours 3, 7 and 9, at minutes 5 and 7, Monday to Friday"),
    ],
)
def test_the_time_of_day(text, sentence):
    assert explain(text) == sentence


@pytest.mark.parametrize(
    ("days", "sentence"),
    [
        ("? * ?", "every day"),
        ("1-31 * *", "every day"),
        ("* 6 *", "every day in June"),
        ("* 3-5,12 *", "every day in March to May and December"),
        ("1 * *", "on day 1 of every month"),
        ("1,15 * *", "on days 1 and 15 of every month"),
        ("*/2 * *", "on days 1 to 31 in steps of 2 of every month"),
        ("L * *", "on the last day of every month"),
        ("LW * *", "on the last weekday (Monday to Friday) of every month"),
        ("15,L * *", "on day 15 and the last day of every month"),
        ("29 2 *", "on 29 February"),
        ("1 1,7 *", "on day 1 of January and July"),
        ("* * 0", "on Sunday"),
        ("* * 7", "on Sunday"),
        ("* * 6,0", "on Saturday and Sunday"),
        ("* * 1,3,5", "on Monday, Wednesday and Friday"),
        ("* 6 MON", "on Monday in June"),
        ("* * MON#1", "on the first Monday of every month"),
        ("* 3 5L", "on the last Friday of March"),
    ],
)
def test_the_days(days, sentence):
    assert explain(f"30 2 {days}") == f"At 02:30 {sentence}"


def test_a_run_of_weekdays_follows_a_comma():
    assert explain("0 9 * * MON-FRI") == "At 09:00, Monday to Friday"
    assert explain("0 9 * 6 FRI-SUN") == "At 09:00, Friday to Sunday in June"


def test_two_fields_of_days_widen_each_other_unless_one_starts_with_a_star():
    on_13th = "At 00:00 on day 13 of every month"
    odd = "At 00:00 on days 1 to 31 in steps of 2 of every month"

    assert explain("0 0 13 * 5") == f"{on_13th}, and also on Friday"
    assert explain("0 0 */2 * 5") == f"{odd}, but only on Friday"
    assert explain("0 0 13 * 0-6") == "At 00:00 every day"
    assert explain("0 0 1-31 * 5") == "At 00:00 every day"


@pytest.mark.parametrize(
    ("duration", "sentence"),
    [
        ("1s", "Every second"),
        ("90s", "Every 90 seconds"),
        ("119s", "Every 119 seconds"),
        ("121s", "Every 2 minutes and 1 second"),
        ("60m", "Every hour"),
        ("1h30m", "Every 90 minutes"),
        ("24h", "Every 24 hours"),
        ("2d", "Every 2 days"),
        ("366d", "Every 366 days"),
        ("3661s", "Every 1 hour, 1 minute and 1 second"),
    ],
)
def test_an_interval(duration, sentence):
    assert explain(f"@every {duration}") == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("H H * * *", f"At a time {NAME} every day"),
        ("H * * * *", f"Every hour, at a minute {NAME}"),
        ("H */6 * * *", f"Every 6 hours, at a minute {NAME}"),
        ("H 2 * * *", f"In hour 2, at a minute {NAME}, every day"),
        ("0 H(0-5) * * *", f"In an hour from 0 to 5 {NAME}, at minute 0, every day"),
        (
            "H/15 * * * *",
            f"Every hour, at minutes from 0 to 59 in steps of 15, the first {NAME}",
        ),
        ("0 0 H * *", f"At 00:00 on a day from 1 to 28 {NAME} of every month"),
        ("0 0 * * H(MON-FRI)", f"At 00:00 on a weekday from Monday to Friday {NAME}"),
    ],
)
def test_what_is_chosen_by_name_is_said_to_be(text, sentence):
    assert explain(text) == sentence


def test_a_name_is_explained_by_what_it_stands_for():
    assert explain("@hourly") == "Every hour, at minute 0"
    assert explain("@weekly") == "At 00:00 on Sunday"
    assert explain("@yearly") == "At 00:00 on 1 January"


@pytest.mark.parametrize("text", ["61 * * * *", "0 0 30 2 *", "@dayly"])
def test_what_cannot_be_is_refused_instead_of_explained(text):
    with pytest.raises(InvalidSchedule, match="cron"):
        explain(text)
