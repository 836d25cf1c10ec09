"""A server whose users were all ended by signals stops by itself."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from mainspring.db import embedded
from mainspring.db.embedded.shares import stop_unused
from tests.db.embedded.processes import answers
from tests.support.waiting import wait_until


def reapers(data_dir: Path) -> list[int]:
    """The programs that run beside the server of this data directory."""
    words = b"/reaper.py\0%s\0" % bytes(data_dir)
    found = [each for each in Path("/proc").glob("[0-9]*") if words in _command(each)]
    return [int(process.name) for process in found]


def _command(process: Path) -> bytes:
    with suppress(OSError):  # Gone by now.
        return (process / "cmdline").read_bytes()
    return b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_stops_when_a_signal_has_ended_all_its_users(data_dir, hold, number):
    first, second = hold(data_dir), hold(data_dir)
    _, url = first.server()
    second.server()

    for holder in (first, second):
        holder.process.send_signal(number)

    wait_until(lambda: not answers(url), 30, "the server has stopped")


def test_a_server_that_is_used_is_not_stopped(data_dir, hold):
    other = hold(data_dir)
    _, url = other.server()

    stop_unused(data_dir)
    assert answers(url)

    with embedded.running(data_dir):
        other.leave()
        stop_unused(data_dir)
        assert answers(url)


def test_a_server_whose_reaper_was_killed_gets_another(data_dir, hold):
    first = hold(data_dir)
    _, url = first.server()
    for pid in reapers(data_dir):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not reapers(data_dir), 30, "the reaper is gone")
    second = hold(data_dir)
    second.server()

    for holder in (first, second):
        holder.kill()

    wait_until(lambda: not answers(url), 30, "the server has stopped")


def test_the_reaper_ends_with_its_server(data_dir, hold):
    with embedded.running(data_dir):
        other = hold(data_dir)
        other.server()
        assert len(reapers(data_dir)) == 1
        other.leave()

    wait_until(lambda: not reapers(data_dir), 30, "the reaper has ended")
