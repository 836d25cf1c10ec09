"""Flows: the order of steps, and circles that are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidFlow, InvalidOption
from mainspring.domain.flows import (
    MOST_DEPENDENCIES,
    MOST_STEPS,
    Step,
    as_facts,
    ensure_step_options,
    in_order,
)
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId


def step(name: str, *parents: Step | JobId) -> Step:
    return Step("work", {}, EnqueueOptions(), name=name, parents=list(parents))


def test_steps_come_behind_what_they_wait_for():
    first = step("first")
    last = step("last", first)

    assert in_order([last, first]) == [first, last]


@given(st.data(), st.integers(2, 30))
def test_every_flow_without_a_circle_is_put_in_order(data, size):
    steps = [step(str(number)) for number in range(size)]
    for number, each in enumerate(steps):
        earlier: list[Step | JobId] = [JobId(1), *steps[:number]]
        each.after(*data.draw(st.lists(st.sampled_from(earlier), max_size=3)))
    shuffled = data.draw(st.permutations(steps))

    ordered = in_order(shuffled)

    assert sorted(ordered, key=id) == sorted(steps, key=id)
    for each in ordered:
        assert all(
            ordered.index(parent) < ordered.index(each)
            for parent in each.parents
            if isinstance(parent, Step)
        )


def test_a_circle_is_refused_and_named():
    one, two, three = step("one"), step("two"), step("three")
    one.after(three)
    two.after(one)
    three.after(two)

    with pytest.raises(InvalidFlow, match=r"the steps form a cycle: .*one.*two"):
        in_order([one, two, three])


def test_of_a_long_cycle_only_some_steps_are_named():
    steps = [step(f"s{number}") for number in range(MOST_STEPS)]
    for number, each in enumerate(steps):
        each.after(steps[number - 1])

    with pytest.raises(
        InvalidFlow, match=r"after \.\.\. \(9,991 more\) after <step s\d+>$"
    ) as found:
        in_order(steps)
    assert len(str(found.value)) < 400


def test_a_flow_has_no_more_steps_than_the_bound():
    steps = [step(str(number)) for number in range(MOST_STEPS + 1)]

    assert len(in_order(steps[:-1])) == MOST_STEPS
    with pytest.raises(InvalidFlow, match=r"at most 10,000 steps, not 10,001; split it"):
        in_order(steps)


def test_the_steps_of_a_flow_have_no_more_parents_than_the_bound():
    top, bottom = step("top"), step("bottom")
    bottom.after(*[top] * MOST_DEPENDENCIES)
    assert in_order([top, bottom])

    bottom.after(top)
    with pytest.raises(InvalidFlow, match=r"at most 50,000 parents together, not 50,001; put"):
        in_order([top, bottom])


def test_a_step_that_waits_for_itself_is_refused():
    alone = step("alone")
    alone.after(alone)

    with pytest.raises(InvalidFlow, match="the steps form a cycle"):
        in_order([alone])


def test_a_step_of_another_flow_is_refused():
    with pytest.raises(InvalidFlow, match="<step here> comes after <step there>, which belongs to"):
        in_order([step("here", step("there"))])


def test_a_flow_without_steps_is_refused():
    with pytest.raises(InvalidFlow, match="the flow has no steps"):
        in_order([])


def test_steps_are_written_down_by_number():
    first = step("first", JobId(7))
    last = step("last", first)

    facts = as_facts([first, last], [{}, {}])

    assert [each.get("after") for each in facts] == [None, [0]]
    assert [each.get("after_jobs") for each in facts] == [[7], None]


def test_what_to_do_on_failure_is_one_of_three():
    with pytest.raises(InvalidOption, match="on_parent_failure must be 'cancel', 'continue' or"):
        Step("work", {}, EnqueueOptions(), on_parent_failure="panic")


def test_options_that_make_no_sense_for_a_step_are_refused():
    with pytest.raises(InvalidOption, match="dedupe_key is not a step option"):
        ensure_step_options(["queue", "dedupe_key"])
