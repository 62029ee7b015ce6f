"""experiments/paper has every figure's runs, no others, in files that `ofan sim` reads."""

import pytest

from fattree.experiment.model import Scenario
from fattree.texts.sweep_file import load_sweep
from pages.experiment_files import FOLDER, PRESET, _axes, _blocks, files
from reproduction.report.contents import FIGURES, figure

COMMITTED = sorted(FOLDER.glob("*.toml"))


def keys(scenarios: list[Scenario]) -> list[str]:
    return sorted({scenario.model_dump_json(exclude={"name"}) for scenario in scenarios})


@pytest.mark.parametrize("name", FIGURES)
def test_a_figures_files_have_its_runs(name: str) -> None:
    paths = [path for path in COMMITTED if path.stem.split("-")[0] == name]
    runs = [scenario for path in paths for scenario in load_sweep(path)]
    assert keys(runs) == keys(list(figure(name).scenarios(PRESET))), (
        "run python -m pages.experiment_files"
    )


@pytest.mark.slow
def test_files_are_as_they_would_be_written() -> None:
    expected = {file: text for name in FIGURES for file, text in files(figure(name)).items()}
    assert {path.name: path.read_text() for path in COMMITTED} == expected, (
        "run python -m pages.experiment_files"
    )


def test_runs_that_are_no_grid_are_split_into_grids() -> None:
    rows = [
        {"k": k, "policy": policy}
        for k, policy in ((4, "a"), (4, "b"), (8, "a"), (8, "b"), (8, "c"))
    ]
    blocks = _blocks(rows)
    assert sorted(map(len, blocks)) in ([1, 4], [2, 3])
    assert sorted(map(repr, rows)) == sorted(repr(row) for block in blocks for row in block)
    assert _axes(rows) == {"k": [4, 8], "policy": ["a", "b", "c"]}
