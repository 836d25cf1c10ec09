"""Lists as a person sees them on a terminal, and as a program reads them from a pipe."""

import pytest

from examples import hello
from mainspring.testing import bind
from tests.support.commands import on_terminal

WIDE = "reports.generate_monthly_invoice_overview"
CRON = "0,5,10,15,20,25,30,35,40,45,50,55 6-18 1-7,15-21 1-11/2 mon-fri"
DEFINE = f"insert into mainspring.definitions (key, kind, queue) values ('{WIDE}', 'python', 'q')"


@pytest.fixture
def scheduled(command, connection) -> None:
    connection.execute(DEFINE)
    command("schedules", "create", "nightly", "--definition", WIDE, "--cron", CRON)
    command("enqueue", WIDE, "--delay", "5m")


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
@pytest.mark.usefixtures("scheduled")
def test_names_and_cron_are_whole_on_every_terminal(database_url, columns):
    url = {"MAINSPRING_DATABASE_URL": database_url}
    listed = on_terminal("schedules", "list", columns=columns, environment=url).stdout
    jobs = on_terminal("jobs", "list", columns=columns, environment=url).stdout

    assert CRON in listed
    assert WIDE in jobs
    assert jobs.split()[:3] == ["ID", "STATE", "DEFINITION"]
    assert max(map(len, jobs.splitlines())) <= columns


@pytest.mark.usefixtures("scheduled")
def test_a_pipe_gets_everything_also_where_colors_are_forced(command):
    plain = command("schedules", "list", COLUMNS="60")
    forced = command("schedules", "list", COLUMNS="60", FORCE_COLOR="1")

    header, row = (line.split("\t") for line in plain.stdout.splitlines())
    found = dict(zip(header, row, strict=True))
    assert (found["NAME"], found["STATE"], found["WHEN"], found["ZONE"]) == (
        *("nightly", "enabled"),
        *(CRON, "UTC"),
    )
    assert "Monday" in found["MEANING"]
    assert forced.stdout == plain.stdout


def test_an_empty_list_in_a_pipe_is_its_header(command):
    done = command("jobs", "list")

    assert done.stdout == "ID\tSTATE\tTENANT\tDEFINITION\tQUEUE\tTRY\tCREATED\tTOOK\tFROM\tNOTE\n"
    assert done.stderr == "No jobs.\n"


def test_what_is_shown_of_a_job_is_tab_separated_in_a_pipe(command, database_url):
    with bind(hello.app, database_url):
        hello.hello.enqueue(name="Ada " * 50)
    shown = command("jobs", "show", "1", COLUMNS="60").stdout

    facts = dict(line.split("\t") for line in shown.splitlines())
    assert facts["payload"] == '{"name":"' + "Ada " * 50 + '"}'
