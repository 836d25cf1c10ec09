"""Combines what the processes of a test run have covered, and prints a line for each package.

python tools/coverage_table.py
"""

import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coverage import Coverage
from coverage.exceptions import NoDataError

PACKAGE: Final = Path("src/mainspring")
STATEMENTS: Final = ("num_statements", "covered_lines")
BRANCHES: Final = ("num_branches", "covered_branches")

Counts = Counter[str]


def main() -> int:
    coverage = Coverage()
    try:
        coverage.combine()
    except NoDataError:
        print("No coverage was measured.", file=sys.stderr)
        return 1
    # A module that nothing has imported counts as well.
    for path in PACKAGE.rglob("*.py"):
        coverage.get_data().touch_file(str(path.resolve()))
    coverage.save()
    packages = _packages(_files(coverage))
    print(_line("coverage", "statements", "branches", "covered"))
    for name, counts in sorted(packages.items()):
        print(_row(name, counts))
    print(_row("total", sum(packages.values(), Counter())))
    return 0


def _files(coverage: Coverage) -> Mapping[str, Mapping[str, int]]:
    with tempfile.NamedTemporaryFile("r") as report:
        coverage.json_report(outfile=report.name)
        files = json.load(report)["files"]
    return {name: file["summary"] for name, file in files.items()}


def _packages(files: Mapping[str, Mapping[str, int]]) -> Mapping[str, Counts]:
    """The modules that lie beside the packages count as one."""
    counts: dict[str, Counts] = defaultdict(Counter)
    for name, summary in files.items():
        inside = Path(name).relative_to(PACKAGE)
        package = inside.parts[0] if len(inside.parts) > 1 else "(modules)"
        for column in (*STATEMENTS, *BRANCHES):
            counts[package][column] += summary[column]
    return counts


def _row(name: str, counts: Counts) -> str:
    every, covered = (counts[a] + counts[b] for a, b in zip(STATEMENTS, BRANCHES, strict=True))
    share = f"{100 * covered / every:.1f} %"
    return _line(name, f"{counts['num_statements']:,}", f"{counts['num_branches']:,}", share)


def _line(name: str, *cells: str) -> str:
    return f"{name:<12}" + "".join(f"{cell:>12}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())
