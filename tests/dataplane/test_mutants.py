"""Programs with one rule broken: for each patch in `mutants/` the tests that it names must go red.

The first line of a patch names the rule it breaks, the second the tests that must notice. It is
applied to a copy of `p4src` that stands beside links to everything else.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATCHES = sorted((Path(__file__).parent / "mutants").glob("*.patch"))
FAILED_TESTS = 1


def workspace(folder: Path) -> Path:
    """Return a folder that looks like the project, with a p4src of its own."""
    for entry in ROOT.iterdir():
        if entry.name[0] != "." and entry.name != "p4src":
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "p4src", folder / "p4src")
    return folder


def named_tests(patch: Path) -> list[str]:
    """Return the tests that must notice a patch, by its second line."""
    second = patch.read_text().splitlines()[1]
    return [f"tests/dataplane/{name}" for name in second.removeprefix("Tests: ").split()]


def test_there_are_enough_mutants_of_every_program() -> None:
    touched = [patch.read_text() for patch in PATCHES]
    assert len(PATCHES) >= 20
    assert all(
        any(f"p4src/{name}.p4" in text for text in touched)
        for name in ("ecmp", "round_robin", "adaptive", "host_dr", "themis", "mrc_srv6")
    )


@pytest.mark.slow
@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: str(path.stem))
def test_a_broken_rule_is_noticed(patch: Path, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    subprocess.run(["git", "apply", "--unsafe-paths", str(patch)], cwd=folder, check=True)
    quick = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *quick, *named_tests(patch)]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == FAILED_TESTS, (
        f"nobody noticed: {patch.read_text().splitlines()[0]}\n{finished.stdout[-2000:]}"
    )
