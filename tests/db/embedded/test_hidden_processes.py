"""A server whose process /proc hides from us lives: that it is not seen proves nothing."""

import os
import shutil
import subprocess
import sys

import pytest

from mainspring.db import embedded

# Root in a container has no CAP_SYS_PTRACE, so /proc shows it the processes of other users only
# by its group.
HIDDEN = """
mount -t proc -o hidepid={hidepid},gid=65534 proc /proc
exec setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$@"
"""
RESUME = """
import sys
from pathlib import Path
from mainspring.db.embedded import servers
from mainspring.db.embedded.folders import open_home

home = open_home(Path(sys.argv[1]))
print(servers.resume(home).pid, home.pid_file.exists())
"""


def hidden(command: list[str], hidepid: int = 2) -> subprocess.CompletedProcess[str]:
    script = HIDDEN.format(hidepid=hidepid)
    return subprocess.run(
        ["unshare", "-m", "sh", "-e", "-c", script, "sh", *command],
        check=False,
        capture_output=True,
        text=True,
    )


def can_hide_processes() -> bool:
    is_able = os.getuid() == 0 and all(map(shutil.which, ("unshare", "setpriv")))
    return is_able and hidden(["true"]).returncode == 0


@pytest.mark.skipif(not can_hide_processes(), reason="it takes root and a mount namespace")
@pytest.mark.parametrize("hidepid", [1, 2])
def test_a_server_that_proc_hides_is_joined_and_not_taken_for_dead(data_dir, hidepid):
    with embedded.running(data_dir) as server:
        seen = hidden([sys.executable, "-c", RESUME, str(data_dir)], hidepid)

    assert seen.stdout.split() == [str(server.pid), "True"], seen.stderr
