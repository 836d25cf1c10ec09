"""`mainspring figures`, beside a real worker."""

from tests.support.commands import facts, table
from tests.support.processes import says
from tests.support.waiting import wait_until


def test_figures_say_what_was_done_and_how_long_it_took(command, start, database_url: str):
    before = command("figures")
    app = ("--app", "examples.hello:app")
    says(start("worker", *app, MAINSPRING_DATABASE_URL=database_url), "worker_started")
    for _ in range(3):
        command("enqueue", "hello", '{"name": "Ada"}', "--wait", "30")

    def counted() -> bool:
        series = facts(command("figures", "--json"))["series"]
        return bool(series) and series[0]["total"]["ended"]["succeeded"] == 3

    wait_until(counted, 30, "the figures are there")

    assert "nothing was counted yet" in before.stderr
    (row,) = table(command("figures", "--since", "1h"))
    assert row["FIGURES OF"] == "hello"
    assert (row["ENQUEUED"], row["SUCCEEDED"], row["FAILED"]) == ("3", "3", "0")
    assert row["WAIT P95"] != "-"
    assert row["RUN P95"] != "-"


def test_a_time_that_is_none_is_refused(command):
    done = command("figures", "--since", "yesterday")

    assert done.returncode == 2
    assert "since must be a duration" in done.stderr
