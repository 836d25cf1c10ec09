"""Sharing a server within a process and between processes, and leaving it."""

import os
import signal

from mainspring.db import embedded
from tests.db.embedded.processes import ACQUIRE, answers, run_python

FORK_A_CHILD_THAT_ENDS = """
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print("child ended", flush=True)
sys.stdin.read()
"""
FORK_A_CHILD_THAT_STAYS = """
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.read() if child else signal.pause()
"""


def test_the_server_stops_when_the_last_of_two_processes_leaves(data_dir, hold):
    first, second = hold(data_dir), hold(data_dir)
    (pid, url), (second_pid, _) = first.server(), second.server()
    assert pid == second_pid

    first.leave()
    assert answers(url)

    second.leave()
    assert not answers(url)


def test_shares_within_one_process_are_counted(data_dir):
    first, second = embedded.acquire(data_dir), embedded.acquire(data_dir)

    embedded.release(first)
    assert answers(second.url)

    embedded.release(second)
    assert not answers(second.url)


def test_releasing_twice_takes_nothing_from_another_user(data_dir):
    first = embedded.acquire(data_dir)
    with embedded.running(data_dir) as second:
        embedded.release(first)
        embedded.release(first)

        assert answers(second.url)
    embedded.release(first)


def test_a_process_that_ends_without_releasing_leaves_too(data_dir):
    url, _ = run_python(ACQUIRE, data_dir).communicate(timeout=30)

    assert not answers(url.strip())


def test_a_forked_child_does_not_stop_the_server_by_ending(data_dir, hold):
    parent = hold(data_dir, ACQUIRE + FORK_A_CHILD_THAT_ENDS)
    url = parent.line()
    assert parent.line() == "child ended"

    assert answers(url)
    parent.leave()
    assert not answers(url)


def test_a_forked_child_does_not_keep_the_share_of_its_killed_parent(data_dir, hold):
    parent = hold(data_dir, ACQUIRE + FORK_A_CHILD_THAT_STAYS)
    url, child = parent.line(), int(parent.line())
    parent.kill()

    embedded.release(embedded.acquire(data_dir))

    os.kill(child, signal.SIGKILL)
    assert not answers(url)
