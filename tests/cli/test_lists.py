"""Lists as a person sees them on a terminal, and as a program reads them from a pipe."""

import pytest

from examples import hello
from mainspring.testing import bind
from tests.support.commands import on_terminal, table

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


def test_an_id_is_bare_in_a_pipe_and_named_on_a_terminal(command, database_url):
    url = {"MAINSPRING_DATABASE_URL": database_url}
    words = ("enqueue", "hello", '{"name": "Ada"}')

    assert command(*words).stdout == "1\n"
    assert on_terminal(*words, columns=80, environment=url).stdout == "job 2\n"


def test_an_approval_is_shown_in_full(command, database_url):
    name = "Ada " * 50
    command("enqueue", "hello", f'{{"name": "{name}"}}', "--approvals", "2")
    command("approvals", "approve", "1", "--by", "ann", "--reason", "checked")

    lines = command("approvals", "show", "1", COLUMNS="60").stdout.splitlines()

    facts = dict(line.split("\t") for line in lines)
    assert facts["payload"] == f'{{"name":"{name}"}}'
    assert (facts["approved"], facts["by"], facts["expires"]) == ("1 of 2", "anyone", "never")
    assert facts["vote"].startswith("ann approved ")
    assert ": checked" in facts["vote"]


def test_what_cannot_be_confirmed_names_the_option(command):
    done = command("jobs", "bulk", "cancel", "--all")

    assert (done.returncode, done.stdout.strip()) == (2, "")
    assert "there is no terminal to ask on; pass --yes to confirm" in done.stderr
    assert "Aborted" not in done.stderr


def test_a_list_of_jobs_has_the_first_line_of_an_error_in_a_pipe(command, connection):
    command("enqueue", "hello", '{"name": "Ada"}')
    error = "exited with code 3: " + "x" * 500
    connection.execute("update mainspring.jobs set last_error = %s", (f"{error}\nTraceback",))

    (row,) = table(command("jobs", "list"))
    assert row["NOTE"] == error


def test_workers_have_their_id_and_tenants_their_zone(command):
    workers, tenants = command("workers", "list"), command("tenants", "list")

    assert workers.stdout.startswith("ID\tNAME\t")
    assert table(tenants)[0]["ZONE"] == "UTC"


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
