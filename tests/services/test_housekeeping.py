"""What a process that starts installs, once."""

import asyncio

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidDefinition, ScheduleNotFound
from mainspring.domain.schedules.model import ScheduleSpec
from mainspring.services.housekeeping import install
from mainspring.services.schedules import spec_facts
from mainspring.store import housekeeping as store

NAMES = ["mainspring.doctor", "mainspring.prune_history", "mainspring.prune_keys"]


async def names(app: Mainspring) -> list[str]:
    return [state.spec.name for state in await app.schedules.alist()]


async def test_definitions_and_schedules_are_there_after_the_first_start(app: Mainspring):
    await install(app.database, with_schedules=True)

    assert await names(app) == NAMES
    state = await app.definitions.aget("mainspring.prune_table")
    assert (state.definition.queue, state.is_system) == ("mainspring", True)
    await app.aregister_definitions()
    assert not (await app.definitions.aget("send")).is_system


async def test_a_process_that_fires_nothing_installs_no_schedules(app: Mainspring):
    await install(app.database, with_schedules=False)

    assert await names(app) == []
    assert len(await app.definitions.alist(after="mainspring.")) >= 4


async def test_what_a_person_deleted_or_changed_stays_so(app: Mainspring):
    await install(app.database, with_schedules=True)
    await app.schedules.adelete(NAMES[0])
    await app.schedules.aupdate(NAMES[1], cron="0 3 * * *")
    await app.schedules.adisable(NAMES[2])

    await install(app.database, with_schedules=True)

    with pytest.raises(ScheduleNotFound):
        await app.schedules.aget(NAMES[0])
    assert (await app.schedules.aget(NAMES[1])).spec.cron == "0 3 * * *"
    assert not (await app.schedules.aget(NAMES[2])).spec.enabled


async def test_a_schedule_that_has_the_name_already_is_left_alone(app: Mainspring):
    await install(app.database, with_schedules=False)
    await app.schedules.acreate(NAMES[0], "mainspring.doctor", cron="5 5 * * *")

    await install(app.database, with_schedules=True)

    assert (await app.schedules.aget(NAMES[0])).spec.cron == "5 5 * * *"


async def install_as_before(app: Mainspring) -> None:
    """What the release before the doctor has installed."""
    await install(app.database, with_schedules=False)
    spec = ScheduleSpec(
        name="mainspring.vacuum_check", definition="mainspring.vacuum_check", cron="H H * * *"
    )
    await store.install_schedules(app.database, [spec_facts(spec, 1000)])


async def test_the_check_that_the_doctor_replaces_goes_on_alone(app: Mainspring):
    await install_as_before(app)
    await app.schedules.aupdate("mainspring.vacuum_check", cron="0 3 * * *")

    await install(app.database, with_schedules=True)
    await install(app.database, with_schedules=True)

    assert await names(app) == [*NAMES[1:], "mainspring.vacuum_check"]
    kept = await app.schedules.aget("mainspring.vacuum_check")
    assert (kept.spec.cron, kept.spec.enabled) == ("0 3 * * *", True)


async def test_who_deleted_that_check_is_given_no_doctor(app: Mainspring):
    await install_as_before(app)
    await app.schedules.adelete("mainspring.vacuum_check")

    await install(app.database, with_schedules=True)

    assert await names(app) == NAMES[1:]


async def test_a_program_of_the_release_before_does_not_add_it_beside_the_doctor(app: Mainspring):
    await install(app.database, with_schedules=True)

    await install_as_before(app)

    assert await names(app) == NAMES


async def test_a_definition_that_was_deactivated_stays_so(app: Mainspring):
    await install(app.database, with_schedules=False)
    await app.definitions.adeactivate("mainspring.prune_keys")

    await install(app.database, with_schedules=False)

    assert not (await app.definitions.aget("mainspring.prune_keys")).is_active


async def test_many_who_start_at_once_install_each_schedule_once(
    app: Mainspring, connection: psycopg.Connection
):
    await asyncio.gather(*(install(app.database, with_schedules=True) for _ in range(5)))

    assert await names(app) == NAMES
    count = connection.execute(
        "select count(*) from mainspring.audit where noun = 'schedule' and action = 'create'"
    ).fetchone()
    assert count == (3,)


def test_a_handler_cannot_take_a_key_that_is_built_in(app: Mainspring):
    with pytest.raises(InvalidDefinition, match=r"mainspring.mine: keys that start with"):

        @app.job(key="mainspring.mine")
        async def mine() -> None: ...


def test_a_definition_without_code_cannot_either(app: Mainspring):
    with pytest.raises(InvalidDefinition, match="are built in; choose another"):
        app.definitions.create("mainspring.mine", "sql", function="civic.f")
