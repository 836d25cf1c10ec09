"""Workers of one host look at each other's processes; only a process that is certainly dead counts
as gone."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mainspring.runtime.worker.lease import is_gone, process_identity

NOBODY = 65534
# Another user, with a /proc that does not show whose process it is.
ASK_AS_NOBODY = f"""
import os, sys
from mainspring.runtime.worker.lease import is_gone
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(is_gone(sys.argv[1]))
"""
HIDDEN = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'


def can_hide_processes() -> bool:
    if os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "-m", "sh", "-c", HIDDEN, "sh", "true"], check=False).returncode
        == 0
    )


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def identity_of(child: subprocess.Popen[bytes]) -> str:
    scope = process_identity().rpartition("/")[0]
    started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{scope}/{child.pid}:{started}"


def test_a_process_is_gone_once_it_is_dead(child: subprocess.Popen[bytes]):
    identity = identity_of(child)
    assert not is_gone(identity)

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(identity), "a zombie runs nothing"
    child.wait()

    assert is_gone(identity)


def test_another_process_with_the_same_pid_is_not_the_same():
    assert not is_gone(process_identity())
    assert is_gone(process_identity() + "1")


@pytest.mark.parametrize("identity", ["", "elsewhere/1:1"])
def test_what_is_not_of_this_host_may_live(identity: str):
    assert not is_gone(identity)


@pytest.mark.parametrize(
    ("number", "is_dead"),
    [(errno.ESRCH, True), (errno.EPERM, False), (errno.ENOSYS, False)],
    ids=["no such process", "of another user", "not to be known"],
)
def test_only_no_such_process_means_dead(
    monkeypatch: pytest.MonkeyPatch, number: int, is_dead: bool
):
    def kill(pid: int, signal: int) -> None:
        raise OSError(number, os.strerror(number))

    identity = process_identity()
    monkeypatch.setattr(os, "kill", kill)

    assert is_gone(identity) is is_dead


@pytest.mark.skipif(not can_hide_processes(), reason="it takes root and a mount namespace")
def test_a_process_that_proc_hides_from_another_user_lives():
    asked = [sys.executable, "-c", ASK_AS_NOBODY, process_identity()]

    answer = subprocess.run(["unshare", "-m", "sh", "-c", HIDDEN, "sh", *asked], check=False)

    assert answer.returncode == 0, "another user's worker was taken for dead"
