"""Which columns of a list are shown at which width."""

import pytest

from mainspring.cli.columns import TEXT_AT_LEAST, WHOLE_AT_LEAST, Columns, fit

JOBS = Columns(
    names=("ID", "STATE", "QUEUE", "TRY", "NOTE"), dropped=("TRY", "QUEUE"), text=("NOTE",)
)
CELLS = {"ID": [19], "STATE": [6, 9], "QUEUE": [10], "TRY": [1], "NOTE": [0, 60]}
WIDTHS = {"ID": 19, "STATE": 9, "QUEUE": 10, "TRY": 3, "NOTE": 60}
ALL_BUT_NOTE = 19 + 9 + 10 + 3 + 4 * 2


def shown(available, cells=CELLS):
    return list(fit(JOBS, cells, available).widths)


def test_everything_is_shown_whole_where_it_fits():
    layout = fit(JOBS, CELLS, ALL_BUT_NOTE + 60)

    assert (layout.widths, layout.below) == (WIDTHS, ())
    assert layout.starts == {"ID": 0, "STATE": 21, "QUEUE": 32, "TRY": 44, "NOTE": 49}


@pytest.mark.parametrize(("missing", "note"), [(1, 59), (60 - TEXT_AT_LEAST, TEXT_AT_LEAST)])
def test_text_is_cut_before_a_column_is_dropped(missing, note):
    layout = fit(JOBS, CELLS, ALL_BUT_NOTE + 60 - missing)

    assert layout.widths == {**WIDTHS, "NOTE": note}


def test_columns_are_dropped_in_their_order():
    least = ALL_BUT_NOTE + TEXT_AT_LEAST

    assert shown(least) == ["ID", "STATE", "QUEUE", "TRY", "NOTE"]
    assert shown(least - 1) == shown(least - 5) == ["ID", "STATE", "QUEUE", "NOTE"]
    assert shown(least - 6) == shown(least - 17) == ["ID", "STATE", "NOTE"]


def test_text_that_has_no_place_goes_below_and_columns_come_back():
    layout = fit(JOBS, CELLS, ALL_BUT_NOTE)

    assert layout.widths == {"ID": 19, "STATE": 9, "QUEUE": 10, "TRY": 3}
    assert layout.below == ("NOTE",)


def test_columns_that_are_dropped_last_stay_beside_until_the_text_is_below():
    columns = Columns(names=JOBS.names, dropped=("TRY",), dropped_last=("QUEUE",), text=("NOTE",))
    without_try = ALL_BUT_NOTE - 5 + TEXT_AT_LEAST

    assert list(fit(columns, CELLS, without_try).widths) == ["ID", "STATE", "QUEUE", "NOTE"]
    layout = fit(columns, CELLS, without_try - 1)
    assert (list(layout.widths), layout.below) == (["ID", "STATE", "QUEUE", "TRY"], ("NOTE",))
    assert "QUEUE" in fit(columns, CELLS, ALL_BUT_NOTE - 7).widths
    assert "QUEUE" not in fit(columns, CELLS, ALL_BUT_NOTE - 8).widths


def test_a_value_of_unusual_length_widens_its_column_only_where_that_costs_nothing():
    cells = {**CELLS, "STATE": [9, WHOLE_AT_LEAST, WHOLE_AT_LEAST + 1], "NOTE": [5]}
    all_whole = 19 + WHOLE_AT_LEAST + 1 + 10 + 3 + 5 + 4 * 2

    assert fit(JOBS, cells, all_whole).widths["STATE"] == WHOLE_AT_LEAST + 1
    assert fit(JOBS, cells, all_whole - 1).widths["STATE"] == WHOLE_AT_LEAST
    assert shown(all_whole - 1, cells) == list(WIDTHS)


def test_a_column_stays_wide_where_most_of_its_values_are_long():
    cells = {"ID": [2, 2, 2], "STATE": [9, 40, 40], "QUEUE": [10]}

    assert fit(JOBS, cells, 2 + 40 + 2).widths == {"ID": 2, "STATE": 40}
    assert fit(JOBS, {**cells, "STATE": [9, 9, 40]}, 2 + 40 + 2).widths["STATE"] == 9


def test_what_is_never_dropped_gets_narrower_but_never_than_its_name():
    assert fit(JOBS, CELLS, 30).widths == {"ID": 19, "STATE": 9}
    assert fit(JOBS, CELLS, 29).widths == {"ID": 2, "STATE": 9}
    assert fit(JOBS, CELLS, 5).widths == {"ID": 2, "STATE": 5}


def test_columns_without_values_take_no_place():
    assert shown(30, {"ID": [19], "STATE": [9]}) == ["ID", "STATE"]


def test_a_column_that_is_not_in_the_list_cannot_be_dropped():
    with pytest.raises(ValueError, match="unknown columns: QUEU"):
        Columns(names=("ID", "QUEUE"), dropped=("QUEU",))
