"""A small report, made once for all tests of its content."""

from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ofan import cli

FIGURES = ("timeline", "invariant")
TINY = ("--quick", *(word for name in FIGURES for word in ("--figure", name)))


class Report(NamedTuple):
    """A report's folder, and the JSON output of its command."""

    folder: Path
    said: str


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("report") / "tiny"
    arguments = ["report", *TINY, "--jobs", "1", "--output", str(folder), "--json"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return Report(folder, done.stdout)
