"""docs/workloads.md: the figures of its table are those of runs."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import ofan

PAGE = Path(__file__).parents[1] / "docs" / "workloads.md"
NUMBER = r" ([\d,]+) "
ROW = rf"^\| (one forward, one backward|`(--[a-z-]+(?: \d)?)`) \|{NUMBER}\|{NUMBER}\|{NUMBER}\("


def ran(*arguments: str) -> str:
    result = CliRunner().invoke(ofan.cli, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_steps_in_all_orders_take_as_long_as_on_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (generation,) = re.findall(r"^ofan (workload from-model .*) --dual-pipe$", text, re.MULTILINE)
    behind = text[text.index(generation) :]
    (simulation,) = re.findall(r"^ofan (sim run .*)$", behind, re.MULTILINE)[:1]
    rows = re.findall(ROW, text, re.MULTILINE)
    assert len(rows) == 4
    file = str(tmp_path / "step.parquet")
    for _, option, *figures in rows:
        ran(*generation.replace("step.parquet", file).split(), *option.split())
        shown = ran(*simulation.replace("step.parquet", file).split(), "--json")
        (record,) = json.loads(shown)["runs"]
        step, computed = (record["scale"] * record[name] / 1e9 for name in ("cct_ps", "compute_ps"))
        said = [int(figure.replace(",", "")) for figure in figures]
        assert said == [round(step), round(computed), round(step - computed)], option
