"""Check that no room has more vague words than before (`tests.words.counting`).

    python -m tests.words            fails where a count is higher
    python -m tests.words --write    keeps the counts of today

`counts.csv` has a line for each room. A new room begins with none.
"""

import argparse
import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.words.counting import KINDS, rooms

ROOT = Path(__file__).resolve().parents[2]
COUNTS = Path(__file__).with_name("counts.csv")
Counts = Mapping[str, Mapping[str, int]]


def today(root: Path = ROOT) -> dict[str, Counter[str]]:
    """Return the counts of all rooms of a checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return rooms(root, listed.stdout.splitlines())


def kept(path: Path = COUNTS) -> dict[str, dict[str, int]]:
    """Return the counts that are kept."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            row["room"]: {kind: int(row[kind]) for kind in KINDS} for row in csv.DictReader(lines)
        }


def risen(before: Counts, now: Counts) -> list[str]:
    """Return a line for each count that has risen."""
    return [
        f"{folder}: {kind} {before.get(folder, {}).get(kind, 0)} -> {counts.get(kind, 0)}"
        for folder, counts in now.items()
        for kind in KINDS
        if counts.get(kind, 0) > before.get(folder, {}).get(kind, 0)
    ]


def write(counts: Counts, path: Path = COUNTS) -> None:
    """Keep the counts of rooms that have any."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(("room", *KINDS))
        for folder, counted in sorted(counts.items()):
            if any(counted[kind] for kind in KINDS):
                table.writerow((folder, *(counted[kind] for kind in KINDS)))


def summary(counts: Mapping[str, Counter[str]]) -> str:
    """Return the rates of product and tests: names in percent, others per 1,000 words."""
    lines = []
    for title, is_test in (("product", False), ("tests", True)):
        total: Counter[str] = Counter()
        for folder, counted in counts.items():
            if (folder.partition("/")[0] in ("tests", "benchmarks")) is is_test:
                total.update(counted)

        rates = [f"names {total['names'] / max(total['bindings'], 1):.1%}"]
        rates += [
            f"{kind} {total[kind] * 1000 / max(total['spoken'], 1):.1f}" for kind in KINDS[1:]
        ]
        lines.append(f"{title}: {', '.join(rates)}")

    return "\n".join(lines)


def main() -> int:
    """Compare today's counts with those kept; 1 where one has risen."""
    parser = argparse.ArgumentParser(prog="python -m tests.words", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the counts of today")
    arguments = parser.parse_args()
    now = today()
    if lines := risen(kept(), now):
        sys.stdout.write("More vague words than before (CONTRIBUTING.md, Words):\n")
        sys.stdout.write("".join(f"  {line}\n" for line in lines))
        return 1

    if arguments.write:
        write(now)

    sys.stdout.write(summary(now) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
