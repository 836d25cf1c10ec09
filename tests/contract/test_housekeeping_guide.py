"""The guide to housekeeping can be followed from top to bottom."""

import re

from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, run
from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess, says

GUIDE = (ROOT / "docs" / "guides" / "housekeeping.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SETTING = re.search(r"export MAINSPRING_PRUNE_TABLES=(\S+)", GUIDE)


def test_the_guide_to_housekeeping_can_be_followed(database_url, connection, tmp_path):
    assert SETTING is not None
    environment = clean_environment(
        MAINSPRING_DATABASE_URL=database_url,
        MAINSPRING_PRUNE_TABLES=SETTING[1],
        MAINSPRING_DEFAULT_SCHEDULES="true",
    )
    up = WorkerProcess(["up"], environment, tmp_path / "up.log", tmp_path)
    try:
        says(up, "scheduler_started")
        up.started(connection)
        printed = []
        for language, text in BLOCK.findall(GUIDE):
            if language == "sql":
                connection.execute(text.encode())
            else:
                done = [run(words, tmp_path, database_url) for words in block_commands(text)]
                printed += [each.stdout for each in done]
    finally:
        up.end()

    assert '"removed": 71' in "".join(printed)
    assert '"problems": []' in printed[-1]
    names = connection.execute("select name from mainspring.schedule_status order by name")
    assert names.fetchall() == [
        ("mainspring.doctor",),
        ("mainspring.prune_history",),
        ("old-sessions",),
    ]
