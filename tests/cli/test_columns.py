"""Which columns of a list are shown at which width."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from mainspring.cli.columns import MEDIUM, SHORT, TEXT_AT_LEAST, Columns, Layout, fit
from tests.support.listings import listings

JOBS = Columns(
    names=("ID", "STATE", "QUEUE", "TRY", "NOTE"), dropped=("TRY", "QUEUE"), text=("NOTE",)
)
CELLS = {"ID": [19], "STATE": [6, 9], "QUEUE": [10], "TRY": [1], "NOTE": [0, 60, 20]}
WIDTHS = {"ID": 19, "STATE": 9, "QUEUE": 10, "TRY": 3, "NOTE": 60}
ALL_BUT_NOTE = 19 + 9 + 10 + 3 + 3 * 2
WITH_NOTE = ALL_BUT_NOTE + 2 + TEXT_AT_LEAST


def widths(layout: Layout) -> dict[str, int]:
    return {name: place.width for name, place in layout.places.items()}


def starts(layout: Layout) -> dict[str, tuple[int, int]]:
    return {name: (place.line, place.start) for name, place in layout.places.items()}


def shown(available, cells=CELLS, columns=JOBS):
    return list(fit(columns, cells, available).places)


def test_everything_is_shown_whole_where_it_fits():
    layout = fit(JOBS, CELLS, ALL_BUT_NOTE + 2 + 60)

    assert (widths(layout), layout.below) == (WIDTHS, ())
    assert [start for _, start in starts(layout).values()] == [0, 21, 32, 44, 49]


def test_text_has_a_column_of_a_least_width_or_is_below_and_no_column_is_dropped_for_it():
    beside, below = fit(JOBS, CELLS, WITH_NOTE), fit(JOBS, CELLS, WITH_NOTE - 1)

    assert (widths(beside), beside.below) == ({**WIDTHS, "NOTE": TEXT_AT_LEAST}, ())
    assert (list(below.places), below.below) == (["ID", "STATE", "QUEUE", "TRY"], ("NOTE",))


def test_short_text_needs_no_more_than_its_width():
    cells = {**CELLS, "NOTE": [0, 12]}

    assert widths(fit(JOBS, cells, ALL_BUT_NOTE + 2 + 12))["NOTE"] == 12
    assert fit(JOBS, cells, ALL_BUT_NOTE + 2 + 11).below == ("NOTE",)


@pytest.mark.parametrize(
    ("notes", "below"), [([41, 40, 0, 0], ()), ([41, 40, 41], ("NOTE",)), ([0, 41], ("NOTE",))]
)
def test_text_most_of_which_is_too_long_for_its_column_has_none(notes, below):
    assert fit(JOBS, {**CELLS, "NOTE": notes}, WITH_NOTE).below == below


def test_columns_are_dropped_in_their_order_once_the_text_is_below():
    assert shown(ALL_BUT_NOTE) == ["ID", "STATE", "QUEUE", "TRY"]
    assert shown(ALL_BUT_NOTE - 1) == shown(ALL_BUT_NOTE - 5) == ["ID", "STATE", "QUEUE"]
    assert shown(ALL_BUT_NOTE - 6) == ["ID", "STATE"]


@pytest.mark.parametrize(
    ("queue", "dropped_first"), [(SHORT, "TRY"), (SHORT + 1, "QUEUE"), (MEDIUM + 1, "QUEUE")]
)
def test_wide_columns_are_dropped_before_narrow_ones(queue, dropped_first):
    cells = {**CELLS, "QUEUE": [queue]}

    left = shown(ALL_BUT_NOTE - 10 + queue - 1, cells)

    assert {"QUEUE", "TRY"} - set(left) == {dropped_first}


def test_the_widest_columns_are_dropped_first():
    columns = Columns(names=("ID", "A", "B"), dropped=("A", "B"))

    assert shown(60, {"ID": [9], "A": [SHORT + 1], "B": [60]}, columns) == ["ID", "A"]


@pytest.mark.parametrize(("long", "width"), [(1, MEDIUM), (2, MEDIUM), (3, 60)])
def test_values_of_unusual_length_widen_no_column(long, width):
    cells = {**CELLS, "STATE": [*[MEDIUM] * (4 - long), *[60] * long]}

    assert widths(fit(JOBS, cells, 19 + 2 + 60 - (long < 3)))["STATE"] == width


def test_a_rare_long_value_leaves_the_text_its_column():
    cells = {**CELLS, "STATE": [9, 9, 9, 60], "NOTE": [40]}

    assert "NOTE" in fit(JOBS, cells, WITH_NOTE).places
    assert fit(JOBS, {**cells, "STATE": [9, 9, 60]}, WITH_NOTE).below == ("NOTE",)


def test_a_column_gets_as_wide_as_its_long_values_where_nothing_else_needs_the_room():
    cells = {"ID": [2], "STATE": [9, 9, 30, 60], "QUEUE": [10]}

    assert widths(fit(JOBS, cells, 2 + 2 + 30 + 2 + 10)) == {"ID": 2, "STATE": 30, "QUEUE": 10}
    assert widths(fit(JOBS, cells, 2 + 2 + 29 + 2 + 10)) == {"ID": 2, "STATE": 9, "QUEUE": 10}


def test_long_values_of_a_column_begin_at_the_same_place():
    cells = {"ID": [2], "STATE": [9, 9, 9, 30], "QUEUE": [10]}
    places = [fit(JOBS, cells, available).places["STATE"] for available in (4 + 30, 4 + 29)]

    assert [(place.start, place.start_of_long) for place in places] == [(4, 4), (4, 2)]


def test_what_is_never_dropped_goes_on_several_lines():
    columns = replace(JOBS, dropped=("TRY",))
    cells = {"ID": [19], "STATE": [30], "QUEUE": [10]}

    assert starts(fit(columns, cells, 52)) == {"ID": (0, 0), "STATE": (0, 21), "QUEUE": (1, 2)}
    assert starts(fit(columns, cells, 50)) == {"ID": (0, 0), "STATE": (1, 2), "QUEUE": (1, 34)}
    assert starts(fit(columns, cells, 20)) == {"ID": (0, 0), "STATE": (1, 2), "QUEUE": (2, 2)}


def test_columns_without_values_take_no_place():
    assert shown(30, {"ID": [19], "STATE": [9]}) == ["ID", "STATE"]


def test_a_list_without_rows_is_its_header():
    assert shown(30, {"ID": [], "STATE": []}) == ["ID", "STATE"]


def test_a_column_that_is_not_in_the_list_cannot_be_dropped():
    with pytest.raises(ValueError, match="unknown columns: QUEU"):
        Columns(names=("ID", "QUEUE"), dropped=("QUEU",))


@given(listings())
@settings(max_examples=30, deadline=None)
def test_a_wider_terminal_never_shows_fewer_columns(listing: tuple[Columns, dict[str, list[int]]]):
    columns, cells = listing
    before = frozenset(columns.names) - frozenset(columns.dropped)

    for available in range(40, 251):
        layout = fit(columns, cells, available)
        assert before <= layout.shown
        before = layout.shown
