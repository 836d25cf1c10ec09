"""What is shipped is what a migrated database has."""

import psycopg

from mainspring.db import shipped


def test_tables_have_the_storage_parameters_of_the_dump(connection: psycopg.Connection):
    rows = connection.execute(
        "select relname, coalesce(reloptions, '{}') from pg_class"
        " where relnamespace = 'mainspring'::regnamespace and relkind in ('r', 'p')"
    ).fetchall()

    present = {name: dict(each.split("=") for each in options) for name, options in rows}
    known = shipped.schema()
    assert {name: known.options_of(name) for name in present} == present
    assert known.tables.keys() <= present.keys()


def test_every_index_and_trigger_is_known(connection: psycopg.Connection):
    indexes = connection.execute(
        "select relname from pg_class where relnamespace = 'mainspring'::regnamespace"
        " and relkind in ('i', 'I') and relname !~ '_\\d{8}_'"
    ).fetchall()
    triggers = connection.execute(
        "select format('%s on %s', tgname, relname) from pg_trigger"
        " join pg_class on pg_class.oid = tgrelid"
        " where relnamespace = 'mainspring'::regnamespace and not tgisinternal and tgparentid = 0"
    ).fetchall()

    assert shipped.schema().indexes == {name for (name,) in indexes}
    assert shipped.schema().triggers == {name for (name,) in triggers}


def test_every_function_with_a_text_is_known(connection: psycopg.Connection):
    rows = connection.execute(
        "select proname, md5(prosrc) from pg_proc"
        " where pronamespace = 'mainspring'::regnamespace and prosqlbody is null"
    ).fetchall()

    texts = {(name, text) for name, each in shipped.function_texts().items() for text in each}
    assert texts == set(rows)


def test_row_level_security_is_known(connection: psycopg.Connection):
    rows = connection.execute(
        "select relname from pg_class where relnamespace = 'mainspring'::regnamespace"
        " and relrowsecurity and relname !~ '_\\d{8}$'"
    ).fetchall()

    assert shipped.schema().protected == {name for (name,) in rows}


def test_names_of_days_and_rebuilds():
    known = shipped.schema()

    assert known.options_of("attempts_20260131") == {}
    assert known.options_of("notes_20260131") is None
    assert known.options_of("notes") is None
    assert known.is_rebuild("jobs_ready_ccnew")
    assert known.is_rebuild("jobs_ready_ccold1")
    assert not known.is_rebuild("jobs_ready")
    assert not known.is_rebuild("mine_ccnew")
