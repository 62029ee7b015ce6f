"""`ofan sim sweep --figure`: pictures show the results of the runs, a panel for each case."""

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

import pytest
from click.testing import CliRunner

import ofan
from emulation.commands.simulation import heeding
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.records.record import Record
from fattree.texts.sweep_file import load_sweep
from sim import run
from sim.errors import SimulationError
from sim.sweeps.pictures import sweep_figure

SIZES = (4096, 8192, 16384)
MATRICES: tuple[Literal["permutation", "all_to_all"], ...] = ("permutation", "all_to_all")
SEEDS = (1, 2)


def scenarios(sizes: tuple[int, ...] = SIZES) -> Iterator[Scenario]:
    for policy in ("simple_rr", "ofan"):
        for matrix in MATRICES:
            for size in sizes:
                for seed in SEEDS:
                    yield Scenario(
                        policy=policy,
                        seed=seed,
                        fabric=Fabric(k=4),
                        collective=Collective(matrix=matrix, message_bytes=size),
                    )


@pytest.fixture(scope="module")
def runs() -> list[tuple[Scenario, Record]]:
    return [(scenario, run(scenario).record) for scenario in scenarios()]


def test_means_and_whiskers_are_those_of_the_runs(runs: list[tuple[Scenario, Record]]) -> None:
    panels = sweep_figure(runs).axes
    assert [axes.get_title() for axes in panels] == [f"matrix {matrix}" for matrix in MATRICES]
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["4,096", "8,192", "16,384"]

    for axes, matrix in zip(panels, MATRICES, strict=True):
        for bars, policy in zip(axes.containers, ("simple_rr", "ofan"), strict=True):
            increases: list[Any] = [
                [
                    100 * record.increase
                    for scenario, record in runs
                    if (record.policy, record.matrix, record.message_bytes)
                    == (policy, matrix, size)
                ]
                for size in SIZES
            ]
            line, _, (whiskers,) = bars
            assert line.get_ydata() == pytest.approx([mean(group) for group in increases])
            assert [high - low for (_, low), (_, high) in whiskers.get_segments()] == pytest.approx(
                [2 * stdev(group) for group in increases]
            )


def test_what_is_not_swept_or_too_much_is_one_line(runs: list[tuple[Scenario, Record]]) -> None:
    same = [
        pair for pair in runs if pair[1].message_bytes == 4096 and pair[1].matrix == MATRICES[0]
    ]
    with pytest.raises(SimulationError, match="needs a swept key: only load balancers and seeds"):
        sweep_figure(same)

    scenario, record = runs[0]
    many = [
        (
            scenario.model_copy(
                update={
                    "horizon_us": 1000.0 + number % 10,
                    "collective": scenario.collective.model_copy(
                        update={"message_bytes": 4096 * (1 + number // 10)}
                    ),
                }
            ),
            record,
        )
        for number in range(100)
    ]
    with pytest.raises(SimulationError, match=r"more panels than a figure has \(9\)"):
        sweep_figure(many)


def test_the_command_writes_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.toml").write_text(
        'policies = ["ofan"]\n[fabric]\nk = 4\n[sweep]\n"collective.message_bytes" = [4096, 8192]\n'
    )
    for name, command in (
        ("a.png", ["sim", "sweep", "sizes.toml", "--jobs", "1", "--store", "s.sqlite"]),
        ("b.svg", ["sim", "results", "s.sqlite"]),
    ):
        result = CliRunner().invoke(ofan.cli, [*command, "--figure", name])
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).stat().st_size > 5000


def test_macros_are_swept_for_programs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = 'policies = ["rsq"]\n[fabric]\nk = 4\n[defines]\nB = 1\n[sweep]\n'
    (tmp_path / "x.toml").write_text(f'{file}"defines.A" = [0, 4, 100]\n"seed" = [1, 2]\n')
    swept = load_sweep(tmp_path / "x.toml")
    assert len(swept) == 6

    mine = [scenario.model_copy(update={"program": "mine.p4"}) for scenario in swept]
    scenarios = heeding([*swept, *mine])
    assert [scenario.program for scenario in scenarios] == [None] * 2 + ["mine.p4"] * 6
    assert {scenario.defines for scenario in scenarios[:2]} == {(("B", "1"),)}

    record = run(scenarios[0]).record
    runs = [
        (scenario, record.model_copy(update={"policy": scenario.balancer}))
        for scenario in scenarios
    ]
    (axes,) = sweep_figure(runs).axes
    level, program = (bars[0] for bars in axes.containers)
    assert list(level.get_xdata()) == list(program.get_xdata()) == [0, 4, 100]
    assert len(set(level.get_ydata())) == 1


def test_a_picture_says_what_its_whiskers_are(runs: list[tuple[Scenario, Record]]) -> None:
    (legend,) = sweep_figure(runs).legends
    assert legend.get_title().get_text() == "means of 2 seeds, whiskers: standard deviation"


def test_a_picture_of_another_kind_is_refused_before_any_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        ofan.cli, ["sim", "sweep", "sweep.toml", "--figure", str(tmp_path / "x.gif")]
    )
    assert result.exit_code == 2
    assert "its name must end in .png or .svg or .pdf" in result.output
