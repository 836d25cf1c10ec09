"""`mainspring doctor`: what it prints, and how it exits."""

import json

import psycopg
import pytest
from rich.cells import cell_len
from rich.console import Console

from mainspring.api.models.doctor import FindingModel, FixModel, ReportModel
from mainspring.cli import doctor as command_module
from mainspring.domain.checks.model import Severity

# The server of the tests does not wait for its disk: D17 is always critical there.
QUIET = [f"--only=D{number}" for number in (13, 15, 25, 28, 31)]


def test_it_exits_with_0_if_nothing_needs_action(command):
    done = command("doctor", *QUIET)

    assert (done.returncode, done.stdout) == (0, "ID\tSEVERITY\tFACT\tMEANING\tADVICE\n")
    assert "5 checks: 0 critical, 0 warnings, 0 notes" in done.stderr


def test_it_exits_with_1_for_warnings_and_prints_fields(command, connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    done = command("doctor", *QUIET)

    assert done.returncode == 1
    fields = done.stdout.splitlines()[1].split("\t")
    assert fields[:2] == ["D15", "warning"]
    assert fields[4] == "alter table mainspring.jobs set (fillfactor = 90);"


def test_it_exits_with_2_for_what_is_critical(command, connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")
    connection.execute("alter table mainspring.jobs disable row level security")

    done = command("doctor", *QUIET, "--json")

    assert done.returncode == 2
    report = json.loads(done.stdout)
    assert [each["id"] for each in report["findings"]] == ["D25", "D15"]
    assert (
        report["findings"][0]["advice"] == "alter table mainspring.jobs enable row level security;"
    )
    assert report["checked"] == ["D13", "D15", "D25", "D28", "D31"]
    assert report["fixes"] == []


@pytest.mark.parametrize(
    "options",
    [
        ["--only", "D99"],
        ["--database-url", "postgresql://127.0.0.1:1/none"],
        ["--server", "http://127.0.0.1:1"],
    ],
)
def test_it_exits_with_3_if_it_could_not_look(command, options):
    done = command("doctor", *options, MAINSPRING_TOKEN="msk_" + "x" * 52)

    assert done.returncode == 3
    assert done.stderr.startswith("error: ")


def test_fix_says_what_it_did_and_does_it_once(command, connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    first = command("doctor", *QUIET, "--fix")
    second = command("doctor", *QUIET, "--fix")

    assert first.returncode == second.returncode == 0
    assert first.stdout.splitlines()[1].split("\t")[:3] == [
        "D15",
        "fixed",
        "set the storage parameters of mainspring.jobs",
    ]
    assert second.stdout.count("\n") == 1


def test_it_works_through_a_server_and_for_operators_only(
    server_command, connection: psycopg.Connection
):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    done = server_command("doctor", "--only", "D15", "--fix", role="operator")
    refused = server_command("doctor", role="admin")

    assert (done.returncode, "\tfixed\t" in done.stdout) == (0, True)
    assert refused.returncode == 3
    assert "the role admin may not read doctor; it requires the role operator" in refused.stderr


def test_it_fits_a_terminal_but_for_what_is_to_be_copied(monkeypatch):
    console = Console(width=80, force_terminal=True, color_system=None, soft_wrap=True)
    monkeypatch.setattr(command_module, "console", console)
    monkeypatch.setattr(command_module, "is_piped", lambda _: False)
    monkeypatch.setattr(command_module, "remark", console.print)
    advice = "alter table mainspring.jobs set (" + "autovacuum_vacuum_threshold = 5000, " * 3 + ");"
    long = "a transaction of \x1b[2Jreport has been open for hours " * 5
    finding = FindingModel(
        id="D03", severity=Severity.WARNING, fact=long, meaning=long, advice=advice
    )
    fix = FixModel(id="D15", action="set it", is_done=False)

    with console.capture() as captured:
        command_module._print(ReportModel(checked=["D03"], findings=[finding], fixes=[fix]))

    shown = captured.get()
    assert "\x1b" not in shown
    lines = shown.splitlines()
    copied = [line for line in lines if advice in line]
    assert len(copied) == 1
    assert all(cell_len(line) <= 80 for line in lines if line not in copied)
    assert any("1 check: 0 critical, 1 warning, 0 notes" in line for line in lines)
