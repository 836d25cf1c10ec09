"""The knowledge graph's vocabulary is maintained when there is something to do."""

import psycopg
import pytest


@pytest.fixture(autouse=True)
def vocabulary(start) -> None:
    start("vocabulary")


def inactive(connection: psycopg.Connection) -> int:
    row = connection.execute("select inactive from vocabulary_figures").fetchone()
    assert row
    return int(row[0])


def add_inactive(connection: psycopg.Connection, prefix: str, count: int) -> None:
    connection.execute(
        "insert into relationship_types"
        " select %s || number, 'CAUSES', false from generate_series(1, %s) as number",
        (prefix, count),
    )


def test_new_types_get_a_category_and_then_there_is_nothing_to_do(connection, trigger):
    done, again = trigger("category_refresh"), trigger("category_refresh")

    assert done["run_state"] == "succeeded"
    assert (again["outcome"], again["reason"]) == ("skipped", "every type has a category")
    found = connection.execute(
        "select name, category from relationship_types where name ~ 'INDIRECTLY|RHYMES' order by 1"
    ).fetchall()
    assert found == [("CAUSES_INDIRECTLY", "CAUSES"), ("RHYMES_WITH", "general")]


def test_consolidation_begins_at_the_upper_threshold_and_ends_at_the_lower(connection, trigger):
    steps = [(trigger("vocab_consolidation")["outcome"], inactive(connection)) for _ in range(3)]

    assert steps == [("enqueued", 10), ("enqueued", 5), ("skipped", 5)]
    add_inactive(connection, "BETWEEN_", 6)
    assert trigger("vocab_consolidation")["reason"] == "0.177419 is not above 0.2"
    add_inactive(connection, "ABOVE_", 2)
    assert trigger("vocab_consolidation")["run_state"] == "succeeded"


def test_edges_go_along_when_types_are_merged(connection, trigger):
    edges = connection.execute("select count(*) from edges").fetchone()

    trigger("vocab_consolidation")

    assert inactive(connection) == 10
    assert connection.execute("select count(*) from edges").fetchone() == edges
