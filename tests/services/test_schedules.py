"""Use cases of schedules on the real database: making, changing, stopping, looking."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import CatchUp, Mainspring, Overlap
from mainspring.domain.errors import (
    DuplicateSchedule,
    InvalidOption,
    InvalidPayload,
    InvalidSchedule,
    InvalidTemplate,
    PayloadTooLarge,
    ScheduleNotFound,
    UnknownDefinition,
)

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
LAST_NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - DAY
EVERYTHING: dict[str, Any] = {
    "description": "Sends what is left",
    "enabled": False,
    "cron": "30 2 * * MON-FRI",
    "zone": "America/New_York",
    "dst_gap": "skip",
    "dst_fold": "both",
    "calendar": {"weekends": True, "when_closed": "next"},
    "starts_at": LAST_NOON,
    "ends_at": LAST_NOON + 400 * DAY,
    "jitter": timedelta(seconds=90.5),
    "payload": {"to": {"name": "Ada"}},
    "queue": "mail",
    "priority": 7,
    "max_attempts": 9,
    "misfire_grace": timedelta(0),
    "catch_up": "all",
    "catch_up_limit": 12,
    "catch_up_max_age": 3 * DAY,
    "overlap": "queue",
    "max_running": 2,
    "run_timeout": timedelta(hours=30),
    "gauge_sql": "select 1",
    "gauge_lower": 1.5,
    "gauge_upper": 2,
    "condition_role": "postgres",
    "condition_timeout": timedelta(milliseconds=250),
    "max_retries": 3,
    "paused_until": LAST_NOON + 9 * DAY,
}


@pytest.fixture
async def nightly(app: Mainspring) -> str:
    """The name of a schedule of `send`, at noon every day."""
    await app.schedules.acreate("nightly", "send", cron="0 12 * * *")
    return "nightly"


# Making


async def test_everything_that_was_asked_for_is_stored(app):
    state = await app.schedules.acreate("all", "send", **EVERYTHING)
    (listed,) = await app.schedules.alist()

    assert {name: getattr(state.spec, name) for name in EVERYTHING} == EVERYTHING
    assert (state.spec.catch_up, state.spec.overlap) == (CatchUp.ALL, Overlap.QUEUE)
    assert listed == state


async def test_what_was_not_asked_for_has_the_defaults_of_plain_sql(app, connection):
    state = await app.schedules.acreate("python", "send", cron="0 12 * * *")
    connection.execute(
        "insert into mainspring.schedules (name, definition, cron)"
        " values ('sql', 'send', '0 12 * * *')"
    )
    plain = await app.schedules.aget("sql")

    different = {
        name
        for name in plain.spec.__slots__
        if getattr(plain.spec, name) != getattr(state.spec, name)
    }
    assert different == {"name"}


async def test_a_name_that_is_taken_is_refused(app, nightly):
    with pytest.raises(DuplicateSchedule, match="schedule 'nightly' already exists"):
        await app.schedules.acreate(nightly, "send", every=MINUTE)


async def test_a_name_belongs_to_one_tenant(app, nightly, connection):
    connection.execute("insert into mainspring.tenants (tenant_id) values ('acme')")
    await app.schedules.acreate(nightly, "send", every=MINUTE, tenant_id="acme")

    assert (await app.schedules.aget(nightly)).spec.every is None
    assert (await app.schedules.aget(nightly, tenant_id="acme")).spec.every == MINUTE


async def test_a_tenant_that_does_not_exist_is_refused(app):
    with pytest.raises(InvalidOption, match="tenant does not exist"):
        await app.schedules.acreate("x", "send", every=MINUTE, tenant_id="nobody")


async def test_a_definition_that_does_not_exist_is_refused_with_the_one_that_was_meant(app):
    with pytest.raises(UnknownDefinition, match="'sned'; did you mean 'send'"):
        await app.schedules.acreate("x", "sned", every=MINUTE)
    with pytest.raises(UnknownDefinition, match=r"'zzz'; create it, or start a worker"):
        await app.schedules.acreate("x", "zzz", every=MINUTE)


@pytest.mark.parametrize(
    ("fields", "error", "problem"),
    [
        ({}, InvalidSchedule, "timing: give exactly one"),
        ({"cron": "0 2 * *"}, InvalidSchedule, "cron: five fields"),
        ({"every": MINUTE, "zone": "Nowhere/Land"}, InvalidSchedule, "zone: there is no time zone"),
        ({"every": 60}, InvalidSchedule, "every: must be a timedelta"),
        ({"every": MINUTE, "overlaps": "skip"}, InvalidSchedule, "did you mean overlap"),
        ({"every": MINUTE, "payload": {"a": LAST_NOON}}, InvalidPayload, "'a' is a datetime"),
        ({"every": MINUTE, "payload": {"a": "\0"}}, InvalidPayload, "NUL byte"),
        ({"every": MINUTE, "payload": {"a": "x" * 2**20}}, PayloadTooLarge, "the limit is"),
        (
            {"every": MINUTE, "payload": {"a": "{{slot}}"}},
            InvalidTemplate,
            "did you mean 'slot_at'",
        ),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_is_stored(app, fields, error, problem):
    with pytest.raises(error, match=problem):
        await app.schedules.acreate("x", "send", **fields)
    assert await app.schedules.alist() == []


# Changing


async def test_an_update_changes_what_it_names_and_nothing_else(app):
    await app.schedules.acreate("all", "send", **EVERYTHING)
    changed = await app.schedules.aupdate("all", jitter=SECOND, payload={"b": 2})

    wanted = {**EVERYTHING, "jitter": SECOND, "payload": {"b": 2}}
    assert {name: getattr(changed.spec, name) for name in EVERYTHING} == wanted


async def test_another_way_to_time_it_replaces_the_one_it_had(app, nightly):
    for timing in ({"every": MINUTE}, {"at": LAST_NOON + 9 * DAY}, {"cron": "@hourly"}):
        spec = (await app.schedules.aupdate(nightly, **timing)).spec
        given = {"cron": spec.cron, "every": spec.every, "at": spec.at}
        assert {name: value for name, value in given.items() if value is not None} == timing


async def test_two_ways_to_time_it_are_one_too_many(app, nightly):
    with pytest.raises(InvalidSchedule, match="timing: give exactly one"):
        await app.schedules.aupdate(nightly, cron="@hourly", every=MINUTE)


async def test_another_condition_replaces_the_one_it_had(app):
    await app.schedules.acreate("all", "send", **EVERYTHING)
    spec = (await app.schedules.aupdate("all", condition_sql="select true")).spec

    assert spec.condition_sql == "select true"
    assert (spec.gauge_sql, spec.gauge_lower, spec.gauge_upper) == (None, None, None)
    assert (await app.schedules.aupdate("all", condition_sql=None)).spec.condition_sql is None


async def test_an_update_is_checked_together_with_what_is_there(app):
    await app.schedules.acreate("x", "send", every=MINUTE, starts_at=LAST_NOON)

    with pytest.raises(InvalidSchedule, match="ends_at: must be after starts_at"):
        await app.schedules.aupdate("x", ends_at=LAST_NOON)
    await app.schedules.aupdate("x", ends_at=LAST_NOON + SECOND)


async def test_none_empties_what_may_be_empty(app):
    await app.schedules.acreate(
        "x", "send", every=MINUTE, queue="mail", ends_at=LAST_NOON + 400 * DAY
    )
    spec = (await app.schedules.aupdate("x", queue=None, ends_at=None)).spec

    assert (spec.queue, spec.ends_at) == (None, None)
    for name in ("zone", "condition_role"):
        with pytest.raises(InvalidSchedule, match=f"{name}: must have a value"):
            await app.schedules.aupdate("x", **{name: None})


async def test_a_schedule_can_be_renamed_but_not_to_a_name_that_is_taken(app, nightly):
    await app.schedules.acreate("other", "send", every=MINUTE)

    assert (await app.schedules.aupdate(nightly, name="daily")).spec.name == "daily"
    with pytest.raises(DuplicateSchedule, match="'other'"):
        await app.schedules.aupdate("daily", name="other")


async def test_an_update_to_a_definition_that_does_not_exist_is_refused(app, nightly):
    with pytest.raises(UnknownDefinition, match="did you mean 'send'"):
        await app.schedules.aupdate(nightly, definition="sned")


async def test_a_deleted_schedule_is_gone_and_its_jobs_stay(app, nightly, connection):
    await app.schedules.atrigger(nightly)
    await app.schedules.adelete(nightly)

    assert await app.schedules.alist() == []
    query = "select (select count(*) from mainspring.slots), (select count(*) from mainspring.jobs)"
    assert connection.execute(query).fetchone() == (0, 1)


# Stopping


async def test_a_disabled_schedule_says_why_until_it_is_enabled(app, nightly, connection):
    connection.execute("update mainspring.clocks set retry_count = 3")
    off = await app.schedules.adisable(nightly, "end of season")
    on = await app.schedules.aenable(nightly)

    assert (off.spec.enabled, off.disabled_reason) == (False, "end of season")
    assert (on.spec.enabled, on.disabled_reason, on.retry_count) == (True, None, 0)


async def test_a_pause_lasts_until_its_instant(app, nightly):
    until = datetime.now(UTC) + 5 * DAY
    paused = await app.schedules.apause(nightly, until)
    (first,) = await app.schedules.apreview(nightly, 1)

    assert (paused.spec.enabled, paused.spec.paused_until) == (True, until)
    assert until < first.at <= until + DAY


async def test_a_pause_without_an_instant_lasts_until_it_is_resumed(app, nightly):
    paused = await app.schedules.apause(nightly)

    assert (paused.spec.enabled, paused.disabled_reason) == (False, "paused")
    assert (await app.schedules.aresume(nightly)).spec.enabled


async def test_resuming_ends_a_pause_before_its_instant(app, nightly):
    await app.schedules.apause(nightly, datetime.now(UTC) + 5 * DAY)
    resumed = await app.schedules.aresume(nightly)

    assert resumed.spec.paused_until is None


@pytest.mark.parametrize("until", [datetime.now(UTC), datetime(2999, 1, 1), "tomorrow"])  # noqa: DTZ001
async def test_a_pause_needs_an_instant_to_come(app, nightly, until):
    with pytest.raises(InvalidSchedule, match=r"^paused_until: "):
        await app.schedules.apause(nightly, until)


async def test_a_schedule_that_plain_sql_broke_can_be_disabled_but_not_enabled(
    app, nightly, connection
):
    connection.execute("""update mainspring.schedules set calendar = '{"weekend": true}'""")
    await app.schedules.adisable(nightly)

    with pytest.raises(InvalidSchedule, match="calendar: unknown key 'weekend'"):
        await app.schedules.aenable(nightly)
    assert (await app.schedules.apause(nightly)).disabled_reason == "paused"


# Looking


Look = Callable[[Mainspring, str], Awaitable[Any]]
LOOKS: dict[str, Look] = {
    "get": lambda app, name: app.schedules.aget(name),
    "update": lambda app, name: app.schedules.aupdate(name, every=MINUTE),
    "enable": lambda app, name: app.schedules.aenable(name),
    "disable": lambda app, name: app.schedules.adisable(name),
    "pause": lambda app, name: app.schedules.apause(name),
    "pause_until": lambda app, name: app.schedules.apause(name, datetime(2999, 1, 1, tzinfo=UTC)),
    "resume": lambda app, name: app.schedules.aresume(name),
    "delete": lambda app, name: app.schedules.adelete(name),
    "trigger": lambda app, name: app.schedules.atrigger(name),
    "history": lambda app, name: app.schedules.ahistory(name),
    "preview": lambda app, name: app.schedules.apreview(name),
    "backfill": lambda app, name: app.schedules.abackfill(name, LAST_NOON, LAST_NOON),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_name_that_does_not_exist_is_refused_with_the_one_that_was_meant(
    app, nightly, look
):
    with pytest.raises(ScheduleNotFound, match="no schedule 'nigtly'; did you mean 'nightly'"):
        await LOOKS[look](app, "nigtly")
    with pytest.raises(ScheduleNotFound, match=r"there is no schedule 'zzz'$"):
        await LOOKS[look](app, "zzz")


async def test_schedules_are_listed_by_name_and_paged(app):
    for name in ("c", "a", "b"):
        await app.schedules.acreate(name, "send", every=MINUTE, enabled=name != "b")

    async def names(**filters: Any) -> str:
        return "".join([state.spec.name for state in await app.schedules.alist(**filters)])

    assert (await names(), await names(limit=2), await names(after="b")) == ("abc", "ab", "c")
    assert (await names(enabled=True), await names(enabled=False)) == ("ac", "b")
    assert (await names(definition="send"), await names(definition="x")) == ("abc", "")


async def test_a_preview_tells_where_the_clock_moves_a_slot(app, nightly):
    await app.schedules.aupdate(nightly, cron="30 2 * * *", zone="America/New_York")
    fires = await app.schedules.apreview(nightly, 2, datetime(2026, 3, 7, 12, tzinfo=UTC))

    assert [fire.at.isoformat() for fire in fires] == [
        "2026-03-08T07:00:00+00:00",
        "2026-03-09T06:30:00+00:00",
    ]
    assert "02:30 does not exist" in str(fires[0].note)
    assert fires[1].note is None


async def test_a_preview_of_an_interval_counts_from_where_the_scheduler_does(app):
    state = await app.schedules.acreate("x", "send", every=timedelta(minutes=7))
    (first,) = await app.schedules.apreview("x", 1)

    assert first.at == state.anchor_at + timedelta(minutes=7)


@pytest.mark.parametrize("count", [1, 1000])
async def test_as_many_fires_as_asked_for_are_shown(app, nightly, count):
    assert len(await app.schedules.apreview(nightly, count)) == count


@pytest.mark.parametrize("count", [0, 1001])
async def test_none_and_too_many_fires_are_refused(app, nightly, count):
    with pytest.raises(InvalidOption, match="count must be from 1 to 1000"):
        await app.schedules.apreview(nightly, count)


async def test_a_preview_after_an_instant_without_a_zone_is_refused(app, nightly):
    with pytest.raises(InvalidOption, match="after needs a time zone"):
        await app.schedules.apreview(nightly, after=LAST_NOON.replace(tzinfo=None))


NEVER = {
    "that has ended": {"ends_at": datetime(2020, 1, 1, tzinfo=UTC)},
    "whose calendar is never open": {
        "calendar": {"weekends": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}
    },
}


@pytest.mark.parametrize("fields", NEVER.values(), ids=NEVER)
async def test_a_schedule_that_would_never_fire_is_refused(app, fields):
    with pytest.raises(InvalidSchedule, match="leaves no slot in the future"):
        await app.schedules.acreate("never", "send", cron="@daily", **fields)

    assert await app.schedules.alist() == []


async def test_a_schedule_says_at_once_that_its_definition_takes_no_jobs(app, nightly, connection):
    assert (await app.schedules.aget(nightly)).problem is None
    connection.execute("update mainspring.definitions set is_active = false where key = 'send'")

    (listed,) = await app.schedules.alist()
    shown = connection.execute("select problem from mainspring.schedule_status").fetchone()

    said = "definition 'send' is deactivated; activate it first"
    assert (await app.schedules.aget(nightly)).problem == listed.problem == said
    assert shown == (said,)


async def test_a_preview_begins_with_the_retry_of_a_slot_that_failed(app, connection):
    await app.schedules.acreate("often", "send", cron="* * * * *")
    retry = "retry_count = 1, next_slot_at = now() + interval '150 s'"
    connection.execute(f"update mainspring.clocks set {retry}, next_run_at = now() + '150 s'")

    first, second = await app.schedules.apreview("often", 2)

    state = await app.schedules.aget("often")
    assert (first.at, first.note) == (state.next_run_at, "tried again after a failure")
    assert (second.at.second, second.note) == (0, None)
    assert first.at < second.at <= first.at + MINUTE


async def test_a_preview_goes_on_after_a_failure_that_is_final(app, connection):
    await app.schedules.acreate("often", "send", cron="* * * * *")
    connection.execute("update mainspring.clocks set retry_count = 1")

    (first,) = await app.schedules.apreview("often", 1)

    assert first.note is None
