"""Answers from runs: kept, resumed, within their time, and those that are known."""

import json
from pathlib import Path

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario, Settings
from fattree.records.record import Record
from sim import Question, choose
from sim.choice.answer import JSON, PARQUET, PICTURE, TEXT, Answer
from sim.choice.choosing import STORE
from sim.choice.conditions import CONDITIONS
from sim.errors import FailedRunsError, UnfinishedError
from sim.sweeps.sweeping import simulate

SMALL = Question(hosts=16, rate_gbps=100)
FEW = {"policies": ("flow", "rsq", "ofan"), "workloads": ("permutation",), "minutes": 60.0}
KNOWN = ("slow", "slow-unknown")


class Counting:
    """Runs scenarios and counts them; stops after `stop_after` runs; `endless` does not end."""

    def __init__(self, stop_after: int = 10**9, endless: str = "") -> None:
        self.ran: list[Scenario] = []
        self.stop_after, self.endless = stop_after, endless

    def __call__(self, scenario: Scenario) -> Record:
        if len(self.ran) >= self.stop_after:
            raise KeyboardInterrupt
        if scenario.policy == self.endless:
            raise UnfinishedError("nothing is left to do")

        self.ran.append(scenario)
        return simulate(scenario)


def small(folder: Path | None = None, run: Counting | None = None, **options: object) -> Answer:
    counted = run or Counting()
    return choose(SMALL, folder=folder, ready=lambda _: counted, **{**FEW, **options})  # type: ignore[arg-type]


def test_an_answer_has_all_rows_and_all_conditions(tmp_path: Path) -> None:
    answer = small(tmp_path, margin=20.0)
    assert {ranked_row.name for ranked_row in answer.places} == {"flow", "rsq", "ofan"}
    assert answer.progress.is_decided and answer.first
    answer.write(str(tmp_path))
    answered = json.loads((tmp_path / JSON).read_text())
    assert list(answered["conditions"]) == list(CONDITIONS)
    assert [row["name"] for row in answered["rows"]] == [
        ranked_row.name for ranked_row in answer.places
    ]
    assert all(set(row["percent"]) == set(CONDITIONS) for row in answered["rows"])
    assert answered["advice"] == answer.advice and answered["margin_points"] == 20
    assert answer.advice in (tmp_path / TEXT).read_text()
    assert "Fabric: " in (tmp_path / TEXT).read_text()
    assert {STORE, PARQUET, PICTURE} <= {path.name for path in tmp_path.iterdir()}
    # A width that a page shows whole.
    width = int.from_bytes((tmp_path / PICTURE).read_bytes()[16:20], "big")
    assert width == 900


def test_the_same_command_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    stopped = Counting(stop_after=30)
    with pytest.raises(KeyboardInterrupt, match=r"30 runs are kept in .*; the same command"):
        small(tmp_path, stopped, margin=20.0)

    rest, whole = Counting(), Counting()
    resumed, direct = small(tmp_path, rest, margin=20.0), small(None, whole, margin=20.0)
    assert len(stopped.ran) == 30
    assert len(rest.ran) == len(whole.ran) - 30
    assert [ranked_row.worst for ranked_row in resumed.places] == [
        ranked_row.worst for ranked_row in direct.places
    ]


def test_time_that_is_over_gives_the_answer_so_far_or_says_that_there_is_none() -> None:
    with pytest.raises(FailedRunsError, match=r"the time is over before .*--minutes; 1 runs are"):
        small(minutes=1e-9)


def test_a_run_that_does_not_end_makes_its_row_the_last() -> None:
    answer = small(run=Counting(endless="ofan"), margin=20.0)
    assert answer.places[-1].name == "ofan"
    assert "never ends" in [row[2] for row in answer.table().rows]
    assert "Without an end: ofan, up, permutation (nothing is left to do)" in answer.text()


def test_the_first_table_comes_with_the_first_workload() -> None:
    seen: list[int] = []
    counted = Counting(stop_after=50)
    with pytest.raises(KeyboardInterrupt):
        small(run=counted, looked=lambda answer: seen.append(len(answer.progress.runs)))

    # Three rows in seven conditions, of a seed.
    assert seen[0] == 21 and seen == sorted(seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": ("rain",)}, "no condition 'rain'; there are up, failed"),
        ({"without": tuple(CONDITIONS)}, "all conditions are left out"),
        ({"workloads": ("chess",)}, "no workload 'chess'"),
        ({"policies": ("ofan",), "nics": "in-order"}, "no load balancer fits"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        small(None, None, **options)


def test_drawn_planes_reorder_what_nics_take_in_order() -> None:
    fabric = {"k": 4, "planes": 2, "plane_use": "draw"}
    with pytest.raises(ExperimentError, match="reorders the packets of a flow"):
        choose({"fabric": fabric}, nics="in-order")


def test_an_experiment_brings_its_own_workload() -> None:
    settings = Settings.model_validate({"fabric": {"k": 4}, "collective": {"message_bytes": 65536}})
    counted = Counting()
    choose(settings, workloads=("yours",), policies=("flow",), minutes=60, ready=lambda _: counted)
    assert {scenario.collective.message_bytes for scenario in counted.ran} == {65536}
    assert {scenario.policy for scenario in counted.ran} == {"flow"}


@pytest.mark.slow
def test_known_results_beside_a_slow_link_come_out() -> None:
    # 4:1, 512 hosts: Ofan is first where routes know the slow link, and last but Flow where they
    # do not, far behind the adaptive switches.
    answer = choose(
        Question(hosts=512, oversubscription=4),
        policies=("flow", "host_pkt_ar", "switch_pkt_ar", "ofan"),
        workloads=("permutation",),
        without=tuple(name for name in CONDITIONS if name not in KNOWN),
        minutes=60,
    )
    aware, unaware = (answer.ground.within([name]) for name in KNOWN)
    assert [ranked_row.name for ranked_row in aware.places()] == [
        "ofan",
        "switch_pkt_ar",
        "host_pkt_ar",
        "flow",
    ]
    assert aware.first() == ["ofan"]
    assert [ranked_row.name for ranked_row in unaware.places()][-2:] == ["ofan", "flow"]
    times = {ranked_row.name: ranked_row.worst.mean for ranked_row in unaware.places()}
    assert times["ofan"] > times["switch_pkt_ar"] + 20
    assert any(line.startswith("only where a link has half") for line in answer.changes)


@pytest.mark.slow
def test_other_seeds_give_the_same_first_three() -> None:
    orders = [
        [ranked_row.name for ranked_row in small(margin=1.0, seed=seed, policies=()).places[:3]]
        for seed in (1, 1001)
    ]
    assert orders[0] == orders[1]
