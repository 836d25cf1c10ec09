"""The guide to retention can be followed from top to bottom."""

import re

from mainspring import Mainspring
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, run

GUIDE = (ROOT / "docs" / "guides" / "retention.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_guide_to_retention_can_be_followed(database_url, connection, tmp_path):
    for language, text in BLOCK.findall(GUIDE):
        if language == "sh":
            for words in block_commands(text):
                run(words, tmp_path, database_url)
        else:
            with Mainspring(database_url) as app:
                exec(compile(text, "retention.md", "exec"), {"app": app})

    kept = connection.execute(
        "select kind, tenant_id, state, keep::text from mainspring.retention_policies()"
        " order by 1, 3 nulls first"
    ).fetchall()
    assert kept == [
        ("audit", None, None, "730 days"),
        ("jobs", None, None, "30 days"),
        ("jobs", None, "failed", "14 days"),
        ("jobs", None, "succeeded", "2 days"),
    ]
