"""`app.doctor`."""

import psycopg

from mainspring import Mainspring


def test_an_app_examines_and_fixes_its_database(database_url: str, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")
    with Mainspring(database_url) as app:
        before = app.doctor.examine(only=["D15"])
        fixed = app.doctor.fix(only=["D15"])

    assert [each.id for each in before.findings] == ["D15"]
    assert ([each.id for each in fixed.fixes], list(fixed.findings)) == (["D15"], [])
