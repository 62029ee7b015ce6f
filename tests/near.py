"""Tests that a change can reach first: those of changed modules, their rooms and neighbours.

make test-near                   changes since the last commit
python -m tests.near main~3      changes since another commit
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tests.mutants.relevance import ROOMS, files, is_near, stages

ROOT = Path(__file__).parents[1]
# Changes of words alone.
WORDS = (".md", ".png", ".svg", ".csv", ".html", ".parquet")


def changed(since: str) -> list[str]:
    """Return the files that differ from a commit, new files among them."""
    commands = (
        ["git", "diff", "--name-only", "--diff-filter=d", since],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    return [
        name
        for command in commands
        for name in subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]


def near(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files to run for changed files; all tests where that cannot be known."""
    chosen: dict[str, None] = {}
    for name in names:
        if name.startswith("docs/") or name == "README.md":
            chosen |= dict.fromkeys(path for path in files(root, "tests") if "docs" in path)
        elif not name.endswith(WORDS):
            chosen |= dict.fromkeys(_near(root, name))

    return ["tests"] if "tests" in chosen else [*chosen]


def _near(root: Path, name: str) -> Iterator[str]:
    """Yield the test files of a changed file; "tests" where it is no Python."""
    path = Path(name)
    if path.suffix != ".py":
        yield "tests"
    elif path.parts[0] == "tests" and path.name.startswith("test_"):
        yield name
    elif name.startswith(tuple(f"{folder}/" for folder in ROOMS)):
        for stage in stages(root, name):
            yield from (test.partition("::")[0] for test in stage.files)
    else:
        for test in files(root, "tests"):
            if is_near(test, (root / test).read_text(encoding="utf-8"), name):
                yield test


if __name__ == "__main__":
    click.echo("\n".join(near(changed(sys.argv[1] if sys.argv[1:] else "HEAD"))))
