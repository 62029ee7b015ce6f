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
from sim.sweeps.pictures import size_in_words, sweep_figure

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
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["4 KiB", "8 KiB", "16 KiB"]

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


def test_without_a_swept_key_load_balancers_stand_side_by_side(
    runs: list[tuple[Scenario, Record]],
) -> None:
    same = [
        pair for pair in runs if pair[1].message_bytes == 4096 and pair[1].matrix == MATRICES[0]
    ]
    (alone,) = sweep_figure(same).axes
    assert [text.get_text() for text in alone.get_xticklabels()] == ["Simple RR", "Ofan"]


def test_more_panels_than_fit_are_refused(runs: list[tuple[Scenario, Record]]) -> None:
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


def stretched(runs: list[tuple[Scenario, Record]], times: float) -> list[tuple[Scenario, Record]]:
    """Return the runs with Simple RR's distance from the bound so many times Ofan's."""
    return [
        (
            scenario,
            record.model_copy(
                update={"increase": 0.01 * (times if record.policy == "simple_rr" else 1)}
            ),
        )
        for scenario, record in runs
    ]


@pytest.mark.parametrize(("times", "scale"), [(19, "linear"), (21, "log")])
def test_load_balancers_far_apart_get_a_logarithmic_axis(
    runs: list[tuple[Scenario, Record]], times: float, scale: str
) -> None:
    for figure in (sweep_figure(stretched(runs, times)), sweep_figure(stretched(runs[:1], 1))):
        figure.draw_without_rendering()

    panels = sweep_figure(stretched(runs, times)).axes
    assert [axes.get_yscale() for axes in panels] == [scale, scale]


def test_a_load_balancer_on_its_bound_leaves_an_axis_with_0(
    runs: list[tuple[Scenario, Record]],
) -> None:
    bound = [
        (scenario, record.model_copy(update={"increase": 0.0 if record.policy == "ofan" else 1.0}))
        for scenario, record in runs
    ]
    few = [(scenario, record) for scenario, record in bound if record.seed == 1][:-1]
    mixed = [*few, (bound[-1][0], bound[-1][1].model_copy(update={"increase": 0.001}))]
    (first, _) = sweep_figure(mixed).axes
    assert first.get_yscale() == "symlog"


def test_load_balancers_can_be_left_out(runs: list[tuple[Scenario, Record]]) -> None:
    assert len(sweep_figure(runs, ["simple_rr"]).axes[0].containers) == 1
    with pytest.raises(SimulationError, match=r"nope: no run has .*, only simple_rr, ofan"):
        sweep_figure(runs, ["nope"])

    with pytest.raises(SimulationError, match="leaves no load balancer for the figure"):
        sweep_figure(runs, ["ofan", "simple_rr"])


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (65536, "64 KiB"),
        (1 << 20, "1 MiB"),
        (3 << 19, "1,536 KiB"),
        (800_000, "800 KB"),
        (4178, "4,178 B"),
        (0, "0 B"),
    ],
)
def test_sizes_are_as_people_read_them(size: int, text: str) -> None:
    assert size_in_words(size) == text


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
