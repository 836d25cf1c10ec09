"""`mainspring schedules ...`: what a person types, reads and gets wrong."""

import yaml

from mainspring.cli.schedule_options import FIELDS
from mainspring.domain.schedules.model import FIELD_NAMES
from tests.support.commands import facts, sentence, table

ADA = '{"name": "Ada"}'
CREATE = ["schedules", "create"]
HELLO = ["--definition", "hello", "--payload", ADA]
NOON = [*CREATE, "noon", *HELLO, "--cron", "0 12 * * *", "--zone", "Europe/Berlin"]
EVERYTHING = {
    "cron": ("30 2 * * MON-FRI", "30 2 * * MON-FRI"),
    "zone": ("Europe/Berlin", "Europe/Berlin"),
    "dst_gap": ("skip", "skip"),
    "dst_fold": ("both", "both"),
    "calendar": ('{"weekends": true}', {"weekends": True}),
    "starts_at": ("2026-01-01", "2025-12-31T23:00:00Z"),
    "ends_at": ("2099-07-01T12:00:00Z", "2099-07-01T12:00:00Z"),
    "jitter": ("1m30s", 90),
    "paused_until": ("2098-07-01T12:00", "2098-07-01T10:00:00Z"),
    "payload": (ADA, {"name": "Ada"}),
    "description": ("for Ada", "for Ada"),
    "queue": ("mail", "mail"),
    "priority": ("7", 7),
    "max_attempts": ("9", 9),
    "misfire_grace": ("0s", 0),
    "catch_up": ("all", "all"),
    "catch_up_limit": ("12", 12),
    "catch_up_max_age": ("3d", 259_200),
    "overlap": ("queue", "queue"),
    "max_running": ("2", 2),
    "run_timeout": ("1h30m", 5400),
    "gauge_sql": ("select 1", "select 1"),
    "gauge_lower": ("1.5", 1.5),
    "gauge_upper": ("2", 2),
    "condition_role": ("postgres", "postgres"),
    "condition_timeout": ("20s", 20),
    "max_retries": ("3", 3),
}


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# Making


def test_every_field_has_an_option():
    told_otherwise = {"name", "definition", "tenant_id"}

    assert {field.name for field in FIELDS} | told_otherwise == set(FIELD_NAMES)


def test_create_takes_every_field(each_server_command):
    options = [part for name, (text, _) in EVERYTHING.items() for part in (option(name), text)]
    made, shown = each_server_command(
        [*CREATE, "all", "--definition", "hello", *options, "--disabled", "--json"],
        ["schedules", "show", "all", "--json"],
    )

    wanted = {name: value for name, (_, value) in EVERYTHING.items()} | {"is_enabled": False}
    assert wanted.items() <= facts(made).items()
    assert facts(made).items() <= facts(shown).items()


def test_create_says_when_it_runs_next(each_server_command):
    made, once, ended, off = each_server_command(
        [*CREATE, "soon", *HELLO, "--every", "90s"],
        [*CREATE, "past", *HELLO, "--at", "2020-01-01"],
        [*CREATE, "ended", *HELLO, "--every", "90s", "--ends-at", "2020-01-01"],
        [*CREATE, "off", *HELLO, "--every", "90s", "--disabled"],
    )

    assert made.stdout.startswith("schedule soon is created; next run in ")
    assert once.stdout == "schedule past is created; next run now\n"
    assert ended.returncode == 2
    assert "timing: leaves no slot in the future" in ended.stderr
    assert off.stdout == "schedule off is created\n"


def test_a_launcher_that_nobody_may_know_gets_a_note(command):
    done = command(*CREATE, "x", *HELLO, "--every", "5m", "--launcher", "Nobody", "--json")

    assert facts(done)["launcher"] == "Nobody"
    assert done.stderr == "note: the app of a scheduler must register the launcher Nobody\n"


EVERY = ["--every", "5m"]
WRONG = {
    "unknown definition 'helo'; did you mean 'hello'?": [*EVERY, "--definition", "helo"],
    "timing: give exactly one of cron, every and at": [*EVERY, "--cron", "@daily"],
    "cron hour: 25 is not from 0 to 23": ["--cron", "0 25 * * *"],
    "zone: there is no time zone 'Europe/Berln'; did you mean": [*EVERY, "--zone", "Europe/Berln"],
    "--every must be a duration up to 366d such as 90s": ["--every", "5 minutes"],
    "--run-timeout must be a duration": [*EVERY, "--run-timeout", "367d"],
    "--at must be": ["--at", "tomorrow"],
    "ends_at: must be after": [*EVERY, "--starts-at", "2026-02-01", "--ends-at", "2026-01-01"],
    "the payload is not JSON": [*EVERY, "--payload", "{name: 1}"],
    "the payload must be a JSON object": [*EVERY, "--payload", "[]"],
    "unknown name 'slot'": [*EVERY, "--payload", '{"a": "{{slot}}"}'],
    "--calendar is not JSON": [*EVERY, "--calendar", "weekends"],
    "calendar: unknown key 'weekend'": [*EVERY, "--calendar", '{"weekend": true}'],
    "--max-running must be 1 or more": [*EVERY, "--max-running", "0"],
}


def test_a_mistake_is_one_sentence_and_nothing_is_made(server_command):
    for said, options in WRONG.items():
        definition = [] if "--definition" in options else HELLO[:2]
        payload = [] if "--payload" in options else HELLO[2:]
        done = server_command(*CREATE, "x", *definition, *payload, *options)
        assert sentence(done).startswith(f"error: {said}"), done.args
        assert done.returncode == 2
    homeless = server_command(*CREATE, "x", *HELLO, *EVERY, "--tenant", "nobody")
    assert (homeless.returncode, sentence(homeless)) == (1, "error: there is no tenant 'nobody'")
    listed = server_command("schedules", "list")
    assert listed.stderr == "No schedules; create one with `mainspring schedules create`.\n"


def test_what_cannot_be_read_says_how_to_get_help(each_server_command):
    wrong_word, without = each_server_command(
        [*CREATE, "x", *HELLO, *EVERY, "--overlap", "maybe"], [*CREATE, "x", *EVERY]
    )

    assert "'maybe' is not one of 'skip', 'queue', 'replace'" in wrong_word.stderr
    assert "Missing option '--definition'" in without.stderr
    assert (wrong_word.returncode, without.returncode) == (2, 2)


def test_a_name_that_is_taken_is_no_mistake_but_not_done_either(each_server_command):
    _, again = each_server_command(NOON, NOON)

    assert again.returncode == 1
    assert sentence(again).startswith("error: schedule 'noon' already exists")


# Looking


def test_list_shows_when_schedules_run_and_how_they_fare(each_server_command):
    shown = each_server_command(
        NOON,
        [*CREATE, "often", *HELLO, "--every", "1h30m"],
        [*CREATE, "once", *HELLO, "--at", "2099-12-24T18:00"],
        ["schedules", "disable", "often", "--reason", "holidays"],
        ["schedules", "list"],
    )[-1]

    noon, often, once = table(shown)
    assert noon.pop("NEXT RUN").endswith(":00:00Z")
    assert list(noon.values()) == [
        *("noon", "enabled", "0 12 * * *", "Europe/Berlin"),
        *("", "-", "at 12:00 every day", ""),
    ]
    assert (often["WHEN"], often["STATE"], often["NOTE"]) == ("every 1h30m", "disabled", "holidays")
    assert once["WHEN"] == "once, 2099-12-24T18:00:00Z"


def test_a_number_alone_is_a_duration_in_seconds(command):
    made = command(*CREATE, "often", *HELLO, "--every", "90", "--jitter", "1.5", "--json")

    assert (facts(made)["every"], facts(made)["jitter"]) == (90, 1.5)


def test_a_list_in_a_pipe_has_instants_in_utc(command):
    berlin = [*HELLO, "--zone", "Europe/Berlin"]
    command(*CREATE, "once", *berlin, "--at", "2099-12-24T18:00")
    command(*CREATE, "later", *berlin, "--cron", "@daily", "--paused-until", "2099-07-01T12:00")

    later, once = table(command("schedules", "list"))

    assert once["WHEN"] == "once, 2099-12-24T17:00:00Z"
    assert (later["STATE"], later["NOTE"]) == ("paused", "until 2099-07-01T10:00:00Z")


def test_list_filters_and_pages(each_server_command):
    listing = ["schedules", "list", "--json"]
    *_, everything, on, after, other = each_server_command(
        NOON,
        [*CREATE, "often", *HELLO, *EVERY, "--disabled"],
        listing,
        [*listing, "--enabled"],
        [*listing, "--after", "noon", "--limit", "1"],
        [*listing, "--definition", "wobbly"],
    )

    assert [state["name"] for state in facts(everything)] == ["noon", "often"]
    assert [state["name"] for state in facts(on)] == ["noon"]
    assert [state["name"] for state in facts(after)] == ["often"]
    assert facts(other) == []


def test_show_tells_what_is_special_and_the_next_five_fires(each_server_command):
    _, shown = each_server_command(
        [*NOON, "--overlap", "queue", "--description", "Lunch"], ["schedules", "show", "noon"]
    )

    lines = shown.stdout.splitlines()
    assert lines[0] == "schedule\tnoon (Lunch)"
    assert "when\t0 12 * * * (at 12:00 every day), Europe/Berlin" in lines
    assert 'runs\thello {"name":"Ada"}' in lines
    assert "overlap\tqueue" in lines
    assert sum(" 12:00:00+0" in line for line in lines) == 5


def test_preview_tells_where_the_clock_moves_a_slot(each_server_command):
    preview = ["schedules", "preview", "night", "--after", "2026-03-07", "--count", "2"]
    _, shown, as_json = each_server_command(
        [*CREATE, "night", *HELLO, "--cron", "30 2 * * *", "--zone", "America/New_York"],
        preview,
        [*preview, "--json"],
    )

    assert "2026-03-08T07:00:00Z\t02:30 does not exist on this day" in shown.stdout
    assert [fire["at"] for fire in facts(as_json)] == [
        "2026-03-07T07:30:00Z",
        "2026-03-08T07:00:00Z",
    ]


# Changing


def test_update_changes_what_is_named_in_the_zone_of_the_schedule(each_server_command):
    update = ["schedules", "update", "noon", "--json"]
    _, moved, timed, cleared, renamed = each_server_command(
        [*NOON, "--queue", "mail"],
        [*update, "--starts-at", "2026-07-01T12:00"],
        [*update, "--every", "5m", "--zone", "UTC"],
        [*update, "--clear", "queue", "--clear", "starts-at"],
        [*update, "--rename", "lunch"],
    )

    assert facts(moved)["starts_at"] == "2026-07-01T10:00:00Z"
    assert (facts(timed)["cron"], facts(timed)["every"]) == (None, 300)
    assert (facts(cleared)["queue"], facts(cleared)["starts_at"]) == (None, None)
    assert facts(renamed)["name"] == "lunch"


def test_an_update_that_cannot_be_is_one_sentence(each_server_command):
    update = ["schedules", "update", "noon"]
    refused = {
        "update needs an option that changes something": update,
        "--clear 'endsat' cannot be cleared; did you mean ends_at?": [
            *update,
            "--clear",
            "endsat",
        ],
        "--clear 'zone' cannot be cleared": [*update, "--clear", "zone"],
        "timing: give exactly one of cron, every and at": [*update, "--clear", "cron"],
        "cron: five fields are needed": [*update, "--cron", "* *"],
    }
    _, *answers = each_server_command(NOON, *refused.values())

    for said, done in zip(refused, answers, strict=True):
        assert sentence(done).startswith(f"error: {said}")
        assert done.returncode == 2


def test_a_schedule_is_disabled_enabled_paused_and_resumed(each_server_command):
    steer = [["schedules", verb, "noon"] for verb in ("disable", "enable", "pause", "resume")]
    until = ["schedules", "pause", "noon", "--until", "2099-07-01T12:00"]
    _, off, on, paused, resumed, later, shown = each_server_command(
        NOON, *steer, until, ["schedules", "show", "noon"]
    )

    assert off.stdout == "schedule noon is disabled\n"
    assert on.stdout.startswith("schedule noon is enabled; next run in ")
    assert paused.stdout == "schedule noon is paused until it is resumed\n"
    assert resumed.stdout.startswith("schedule noon is resumed; next run in ")
    assert later.stdout.startswith("schedule noon is paused; next run in ")
    assert "state\tpaused until 2099-07-01 12:00" in shown.stdout


def test_a_pause_that_is_over_is_a_mistake(each_server_command):
    _, done = each_server_command(NOON, ["schedules", "pause", "noon", "--until", "2020-01-01"])

    assert (done.returncode, sentence(done)) == (2, "error: paused_until: has already passed")


def test_delete_asks_first_and_no_is_no(command, each_server_command):
    command(*NOON)

    assert command("schedules", "delete", "noon", stdin="n\n").returncode == 1
    done, listed = each_server_command(
        ["schedules", "delete", "noon", "--yes"], ["schedules", "list"]
    )
    assert (done.returncode, done.stdout) == (0, "schedule noon is deleted\n")
    assert listed.stderr == "No schedules; create one with `mainspring schedules create`.\n"


def test_a_schedule_is_an_admins_through_a_server(server_command):
    made = server_command(*NOON, "--output", "yaml", role="admin")
    refused = server_command("schedules", "trigger", "noon", role="member")
    operators = server_command(
        "schedules", "update", "noon", "--condition-sql", "select true", role="admin"
    )
    listed = server_command("schedules", "list", "--definition", "hello", role="member")
    fired = server_command("schedules", "trigger", "noon", role="admin")

    assert yaml.safe_load(made.stdout)["zone"] == "Europe/Berlin"
    assert "the role member may not write schedules; it requires the role admin" in sentence(
        refused
    )
    assert "only an operator may set condition_sql" in sentence(operators)
    assert [row["WHEN"] for row in table(listed)] == ["0 12 * * *"]
    assert fired.stdout == "1\n"


VERBS = ["show", "update", "enable", "disable", "pause", "resume", "trigger", "history", "preview"]


def test_a_name_that_does_not_exist_says_what_may_have_been_meant(server_command):
    commands = [[verb, "non"] for verb in [*VERBS, "delete"]]
    server_command(*NOON)

    for words in [*commands, ["backfill", "non", "--from", "2026-01-01"]]:
        done = server_command("schedules", *words)
        said = sentence(done)
        assert said == "error: there is no schedule 'non'; did you mean 'noon'?", done.args
        assert done.returncode == 1
