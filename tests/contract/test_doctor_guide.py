"""The guide to the doctor names every check and every fix, and no other."""

import re

from mainspring.services.doctor_checks import CHECKS
from mainspring.services.doctor_fixes import FIXES
from tests.contract.test_docs import ROOT

GUIDE = (ROOT / "docs" / "guides" / "doctor.md").read_text()


def ids(text: str) -> list[str]:
    """Those at the beginning of the rows of a table."""
    return re.findall(r"^\| (D\d\d) \|", text, re.MULTILINE)


def test_every_check_is_in_the_guide():
    assert ids(GUIDE.partition("## Checks")[2]) == list(CHECKS)


def test_every_fix_is_in_the_guide():
    assert ids(GUIDE.partition("## Fixing")[2].partition("## Every day")[0]) == list(FIXES)


def test_the_changelog_and_the_checks_agree():
    assert f"in {len(CHECKS)} ways" in (ROOT / "CHANGELOG.md").read_text()
