"""The runs that come first, and the data of figures when not everything is finished."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fattree.experiment.model import Scenario
from reproduction.report import schemes
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.gather import Machines, batches, collect, compute, first_look, priority
from reproduction.report.statistics import Estimate
from sim.sweeps.cost import packet_hops

SMALL = {"name": "small", "fabric__k": 4, "collective__message_bytes": 8192}
LARGE = {"name": "large", "collective__matrix": "all_to_all", "collective__message_bytes": 1 << 20}


def scenarios(preset: Preset) -> list[Scenario]:
    return grid(SMALL, ("ofan", "rsq"), preset.seeds(3, 3, 3))


def no_pictures(_: Data) -> dict[str, object]:
    return {}


def no_claims(_: Data) -> Sequence[Verdict]:
    return ()


FIGURE = Figure("tiny", "Tiny", "none", "none", scenarios, no_pictures, no_claims)
ASKED = first_look([FIGURE], Preset("quick"))


def test_packet_hops_are_a_runs_own_count_or_a_little_more() -> None:
    from sim import run

    for scenario in (scenarios(Preset("quick"))[0], Scenario()):
        assert 0.6 < run(scenario).packet_hops / packet_hops(scenario) < 1.2


def test_first_seeds_of_small_runs_come_before_large_runs() -> None:
    small, large = (grid(base, ("ofan",), range(1, 9)) for base in (SMALL, LARGE))
    order = sorted([*large, *small], key=priority)
    assert [(scenario.name, scenario.seed) for scenario in order[:5]] == [
        ("small", seed) for seed in (1, 2, 3)
    ] + [
        ("small", 4),
        ("large", 1),
    ]


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    planned = batches([FIGURE], ASKED, tmp_path)
    told: list[float] = []
    assert compute(planned, Machines(), lambda _figure, done, total: told.append(done / total)) == 6
    assert told[-1] == 1
    assert told == sorted(told)
    assert compute(planned, Machines(), lambda *_: None) == 0


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    for jobs in (1, 2):
        compute(
            batches([FIGURE], ASKED, tmp_path / str(jobs)),
            Machines(jobs),
            lambda *_: None,
        )
    single, double = (
        collect([FIGURE], ASKED, Preset("quick"), tmp_path / str(jobs))["tiny"].frame
        for jobs in (1, 2)
    )
    assert single.drop("cpu_s", "max_rss_bytes").equals(double.drop("cpu_s", "max_rss_bytes"))


def test_a_seed_with_a_run_missing_is_left_out_of_its_part(tmp_path: Path) -> None:
    batch = batches([FIGURE], ASKED, tmp_path)["runs"]

    part = replace(batch, scenarios=batch.scenarios[:3])
    compute({"runs": part}, Machines(), lambda *_: None)
    data = collect([FIGURE], ASKED, Preset("quick"), tmp_path)["tiny"]
    assert sorted({scenario.seed for scenario in data.scenarios}) == [1]
    assert data.missing == 4


def test_pairs_are_of_the_seeds_that_both_have() -> None:
    first = pl.DataFrame({"seed": [3, 1, 2], "sending_increase": [0.3, 0.1, 0.2]})
    second = pl.DataFrame({"seed": [2, 1], "sending_increase": [0.1, 0.0]})
    difference = schemes.paired_by_seed(first, second)
    assert difference.count == 2
    assert difference.mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("mean", "half", "said"),
    [
        (0.002, 0.004, "0.2 ± 0.4 % (no difference above 1 point)"),
        (0.006, 0.003, "0.6 ± 0.3 %"),
        (0.01, 0.02, "1.0 ± 2.0 %"),
    ],
)
def test_what_is_shown_to_be_smaller_than_the_margin_says_so(
    mean: float, half: float, said: str
) -> None:
    assert schemes.versus(Estimate(mean, half, 10), margin=0.01) == said
