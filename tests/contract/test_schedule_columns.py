"""What a person decides about a schedule stands in several lists; a new field must be in all."""

import psycopg
import pytest

from mainspring.domain.schedules.model import FIELD_NAMES

# A schedule does not change its tenant.
CHANGEABLE = set(FIELD_NAMES) - {"tenant_id"}
WATCHED = """
select array_agg(attribute.attname::text)
  from pg_trigger as trigger
  join pg_attribute as attribute
    on attribute.attrelid = trigger.tgrelid and attribute.attnum = any (trigger.tgattr)
 where trigger.tgrelid = 'mainspring.schedules'::regclass and trigger.tgname = %s
"""
STORED = "select pg_get_functiondef('mainspring.store_schedule'::regproc)"


@pytest.mark.parametrize("trigger", ["schedules_prepare", "schedules_audit"])
def test_a_change_of_any_field_is_checked_and_audited(connection: psycopg.Connection, trigger: str):
    ((watched,),) = connection.execute(WATCHED, (trigger,)).fetchall()

    assert CHANGEABLE - set(watched) == set()


def test_the_doors_store_every_field(connection: psycopg.Connection):
    ((definition,),) = connection.execute(STORED).fetchall()
    inserted, _, updated = definition.partition("update mainspring.schedules")

    assert {name for name in FIELD_NAMES if f"schedule.{name}" not in inserted} == set()
    assert {name for name in CHANGEABLE if f"{name} = schedule.{name}" not in updated} == set()
