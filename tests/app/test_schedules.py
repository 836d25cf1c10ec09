"""Schedules in Python: declared on jobs, synced at start, run beside other code."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Context, Launcher, Mainspring, SlotInfo
from mainspring.db.connect import with_options
from mainspring.domain.errors import InvalidPayload, InvalidSchedule, InvalidTemplate
from mainspring.testing import adrain
from tests.support.log_lines import captured_lines
from tests.support.waiting import await_until

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
LAST_NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - DAY


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


def declared(url: str, timing: str = "@daily", /, **fields: Any) -> Mainspring:
    """An app, as a program that starts once more has it, whose schedule is called `tidy`."""
    app = Mainspring(url)

    @app.schedule(timing, **fields)
    @app.job
    async def tidy() -> None: ...

    return app


async def synced(app: Mainspring) -> dict[str, int]:
    """What the log says when the app starts."""
    with captured_lines() as logs:
        await app.schedules.aprepare()
    await app.aclose()
    (said,) = [line for line in logs if line["event"] == "schedules_synced"]
    return {word: said[word] for word in ("created", "changed", "kept") if said[word]}


# Declaring


async def test_a_job_is_declared_with_its_schedule_and_stays_what_it_is(app):
    @app.schedule("0 2 * * *", zone="America/New_York", catch_up="all", payload={"n": 1})
    @app.job
    async def nightly(n: int) -> int:
        return n

    await app.schedules.aprepare()
    spec = (await app.schedules.aget("nightly")).spec

    assert await nightly(7) == 7
    assert (spec.definition, spec.cron, spec.zone) == ("nightly", "0 2 * * *", "America/New_York")
    assert (spec.catch_up, spec.payload) == ("all", {"n": 1})


async def test_one_job_can_have_several_schedules(app):
    @app.schedule("@every 90s", name="often", payload={"n": 1})
    @app.schedule(every=MINUTE, name="steadily", payload={"n": 2})
    @app.schedule(at=NEW_YEAR, name="once", payload={"n": 3})
    @app.schedule(cron="@daily", payload={"n": 4})
    @app.job
    async def count(n: int) -> None: ...

    await app.schedules.aprepare()
    specs = [state.spec for state in await app.schedules.alist()]

    assert {spec.name: spec.cron or spec.every or spec.at for spec in specs} == {
        "count": "@daily",
        "often": "@every 90s",
        "once": NEW_YEAR,
        "steadily": MINUTE,
    }
    assert {spec.definition for spec in specs} == {"count"}


@pytest.mark.parametrize(
    ("timing", "fields", "error", "problem"),
    [
        (None, {}, InvalidSchedule, "timing: give exactly one of cron, every and at"),
        ("0 25 * * *", {}, InvalidSchedule, "cron hour: 25 is not from 0 to 23"),
        ("@daily", {"every": MINUTE}, InvalidSchedule, "timing: give exactly one"),
        ("@daily", {"zone": "Mars/Base"}, InvalidSchedule, "zone: there is no time zone"),
        ("@daily", {"overlap": "maybe"}, InvalidSchedule, "overlap: must be one of skip"),
        ("@daily", {"jitter": 5}, InvalidSchedule, "jitter: must be a timedelta"),
        ("@daily", {"zome": "UTC"}, InvalidSchedule, "zome: .* did you mean zone"),
        ("@daily", {"launcher": int}, InvalidSchedule, "launcher: .* not a subclass of Launcher"),
        ("@daily", {"payload": {"n": "{{x}}"}}, InvalidTemplate, "unknown name 'x'"),
        ("@daily", {"payload": {"m": 1}}, InvalidPayload, "the arguments do not match"),
        ("@daily", {"payload": {"n": "a"}}, InvalidPayload, "payload/n: the value is not of"),
        ("@daily", {"payload": {}}, InvalidPayload, "the arguments .* required argument: 'n'"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_at_once_and_says_whose_it_is(
    timing, fields, error, problem
):
    app = Mainspring("postgresql://nowhere")

    with pytest.raises(error, match=rf"^{problem}.*\(schedule 'count'\)$"):

        @app.schedule(timing, **{"payload": {"n": 1}, **fields})
        @app.job
        def count(n: int) -> None: ...

    assert app.schedules.declared == {}


def test_a_declared_payload_may_have_a_template_where_the_handler_wants_a_value():
    app = Mainspring("postgresql://nowhere")

    @app.schedule("@daily", payload={"n": "{{missed}}"})
    @app.job
    def count(n: int) -> None: ...

    ((spec, _),) = app.schedules.declared.values()
    assert spec.payload == {"n": "{{missed}}"}


def test_a_name_can_be_declared_once():
    app = declared("postgresql://nowhere")

    with pytest.raises(InvalidSchedule, match=r"name: is declared twice .*'tidy'"):
        app.schedule("@hourly")(app.functions["tidy"])
    app.schedule("@hourly", tenant_id="acme")(app.functions["tidy"])


def test_a_decorator_in_the_wrong_place_is_noticed():
    app = Mainspring("postgresql://nowhere")

    def plain() -> None: ...

    with pytest.raises(InvalidSchedule, match=r"put @app\.schedule above @app\.job"):
        app.schedule("@daily")(plain)  # type: ignore[type-var]
    with pytest.raises(InvalidSchedule, match=r'write @app\.schedule\("0 2 \* \* \*"\)'):
        app.schedule(app.job(plain))  # type: ignore[arg-type]
    with pytest.raises(InvalidSchedule, match="cron: is given twice"):
        app.schedule("@daily", cron="@hourly")


async def test_a_launcher_stands_in_for_the_payload_that_a_handler_needs(app):
    class Chooses(Launcher): ...

    @app.schedule("@daily", launcher=Chooses)
    @app.job
    async def count(n: int) -> None: ...

    await app.schedules.aprepare()
    assert (await app.schedules.aget("count")).spec.launcher == "Chooses"


# Syncing


async def test_a_declaration_is_stored_once_and_followed_when_the_code_changes(database_url):
    assert await synced(declared(database_url)) == {"created": 1}
    assert await synced(declared(database_url)) == {}
    assert await synced(declared(database_url, "@hourly", jitter=MINUTE)) == {"changed": 1}

    async with Mainspring(database_url) as app:
        spec = (await app.schedules.aget("tidy")).spec
    assert (spec.cron, spec.jitter) == ("@hourly", MINUTE)


async def test_a_session_in_another_time_zone_reads_the_same_declaration(database_url):
    elsewhere = with_options(database_url, "-c timezone=Asia/Tokyo")
    await synced(declared(database_url, starts_at=NEW_YEAR))

    assert await synced(declared(elsewhere, starts_at=NEW_YEAR)) == {}
    assert await synced(declared(elsewhere, starts_at=NEW_YEAR + DAY)) == {"changed": 1}


async def test_what_a_person_changed_is_kept(database_url, app):
    await synced(declared(database_url))
    await app.schedules.aupdate("tidy", cron="0 5 * * *")

    assert await synced(declared(database_url)) == {}
    assert await synced(declared(database_url, "@hourly")) == {"kept": 1}
    assert (await app.schedules.aget("tidy")).spec.cron == "0 5 * * *"


async def test_what_a_person_stopped_stays_stopped(database_url, app):
    await synced(declared(database_url))
    await app.schedules.adisable("tidy", "not now")

    await synced(declared(database_url, jitter=MINUTE))
    state = await app.schedules.aget("tidy")
    assert (state.spec.enabled, state.spec.jitter) == (False, MINUTE)


async def test_a_schedule_that_a_person_made_first_is_theirs(database_url, app):
    async with declared(database_url) as program:
        await program.aregister_definitions()
    await app.schedules.acreate("tidy", "tidy", every=MINUTE)

    assert await synced(declared(database_url)) == {"kept": 1}
    assert (await app.schedules.aget("tidy")).spec.every == MINUTE


async def test_the_code_wins_if_it_says_so(database_url, app):
    await synced(declared(database_url))
    await app.schedules.aupdate("tidy", cron="0 5 * * *")

    assert await synced(declared(database_url, overwrite=True)) == {"changed": 1}
    assert (await app.schedules.aget("tidy")).spec.cron == "@daily"
    assert await synced(declared(database_url, overwrite=True)) == {}


async def test_an_app_without_schedules_says_nothing_of_them(app):
    with captured_lines() as logs:
        await app.schedules.aprepare()

    assert logs == []


# Launchers


async def test_a_launcher_is_known_by_its_own_name_or_the_one_it_is_given(app):
    @app.launcher
    class One(Launcher): ...

    @app.launcher("second")
    class Two(Launcher): ...

    class Three(Launcher): ...

    app.register_launcher("third", Three)
    app.register_launcher("third", Three)

    assert app.schedules.launchers == {"One": One, "second": Two, "third": Three}


async def test_two_launchers_cannot_share_a_name(app):
    app.register_launcher("same", type("One", (Launcher,), {}))

    with pytest.raises(InvalidSchedule, match=r"launcher: 'same' is already used by .*\.One"):
        app.register_launcher("same", type("Two", (Launcher,), {}))


@pytest.mark.parametrize("thing", [int, Launcher(), "Launcher", None])
async def test_only_a_launcher_is_a_launcher(app, thing):
    with pytest.raises(InvalidSchedule, match="is not a subclass of Launcher"):
        app.register_launcher("x", thing)


@pytest.mark.parametrize(("is_met", "outcome"), [(True, "enqueued"), (False, "skipped")])
async def test_the_launcher_of_an_app_decides(app, is_met, outcome):
    @app.launcher
    class Decides(Launcher):
        def check_conditions(self) -> bool:
            return bool(is_met)

        async def prepare_job_data(self) -> dict[str, Any]:
            return {"n": 7}

    @app.schedule("@yearly", launcher="Decides")
    @app.job
    async def count(n: int) -> None: ...

    async with app.schedules.running():
        done = await app.schedules.atrigger("count", wait=timedelta(seconds=20))

    assert done.outcome == outcome
    assert [job.payload for job in await app.jobs.alist()] == ([{"n": 7}] if is_met else [])


# The slot in a handler


def look(ctx: Context) -> list[Any] | None:
    """What a handler sees of its slot, as JSON."""
    slot = ctx.slot
    if slot is None:
        return None
    return [slot.schedule, slot.at.isoformat(), slot.trigger, slot.is_catch_up, slot.missed]


async def look_in_loop(ctx: Context) -> list[Any] | None:
    return look(ctx)


@pytest.mark.parametrize(
    ("function", "mode"), [(look_in_loop, None), (look, "thread"), (look, "process")]
)
async def test_a_handler_knows_its_slot(app, function, mode):
    job = app.job(key="look", mode=mode)(function)
    await app.schedules.acreate("noon", job, cron="0 12 * * *")
    ((_, job_id),) = await app.schedules.abackfill("noon", LAST_NOON, LAST_NOON)
    unscheduled = await job.aenqueue()
    await adrain(app)

    seen = (await app.jobs.aget(job_id)).result
    assert seen == ["noon", LAST_NOON.isoformat(), "backfill", False, 0]
    assert await unscheduled.aresult(1) is None


@pytest.mark.parametrize(
    ("origin", "seen"),
    [
        ('{"schedule": "noon"}', ["scheduler", False, 0]),
        ('{"schedule": "noon", "trigger": "scheduler", "missed": 2}', ["scheduler", False, 2]),
        ('{"schedule": "noon", "trigger": "catchup", "missed": 4}', ["catchup", True, 4]),
        ('{"schedule": "noon", "trigger": "manual", "missed": 0}', ["manual", False, 0]),
    ],
)
async def test_a_handler_knows_how_its_slot_came_about(app, connection, origin, seen):
    await app.schedules.acreate("noon", app.job(key="look")(look), cron="0 12 * * *")
    await app.schedules.atrigger("noon")
    connection.execute("update mainspring.jobs set origin = %s", (origin,))
    await adrain(app)

    (job,) = await app.jobs.alist()
    assert job.result[2:] == seen


async def test_a_slot_is_a_value(app):
    slots: list[SlotInfo | None] = []

    @app.job
    async def keep(ctx: Context) -> None:
        slots.extend([ctx.slot, ctx.slot])

    await app.schedules.acreate("noon", keep, cron="0 12 * * *")
    await app.schedules.atrigger("noon")
    await adrain(app)

    assert slots[0] == slots[1]
    assert slots[0] is not None
    assert slots[0].at.tzinfo is UTC


# Running


async def test_a_scheduler_runs_beside_other_code_until_the_block_ends(app, connection):
    @app.schedule("@every 1s")
    @app.job
    async def tick() -> None: ...

    async with app.schedules.running():
        await await_until(app.jobs.alist)
        assert "mainspring fire" in names_of_connections(connection)

    await await_until(lambda: "mainspring fire" not in names_of_connections(connection))


def names_of_connections(connection: psycopg.Connection) -> set[str]:
    query = "select application_name from pg_stat_activity where datname = current_database()"
    names = {name for (name,) in connection.execute(query).fetchall()}
    return {name for name in names if name.startswith("mainspring")}


@pytest.mark.parametrize("fails", [False, True])
async def test_a_lifespan_lets_go_of_every_connection(app, connection, fails):
    @app.schedule("@daily")
    @app.job
    async def tidy() -> None: ...

    async def serve() -> None:
        async with app.lifespan(object()):
            await await_until(lambda: "mainspring fire" in names_of_connections(connection))
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            await serve()
    else:
        await serve()
    await await_until(lambda: not names_of_connections(connection))
