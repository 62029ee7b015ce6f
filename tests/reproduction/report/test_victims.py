"""B31: whom an incast's pauses hit; its criterion on both sides of each line."""

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.figures.beyond import victims
from reproduction.report.figure import FAILS, FEW, HOLDS, PARTLY, Outcome, Preset, dotted
from reproduction.report.stored import scenario_of
from sim.sweeps.store import plain
from tests.reproduction.report.made_up import runs

SLOW, FAST = 45.0, 341.0


def with_rates(slow: Mapping[str, int], seeds: int = 40) -> pl.DataFrame:
    """Return runs of which so many of a load balancer's victims are slow: by default all."""
    frames = []
    for policy in victims.SHOWN:
        count = slow.get(policy, seeds)
        rates = [SLOW] * count + [FAST] * (seeds - count)
        frames.append(runs({policy: [0.0] * seeds}).with_columns(victim_gbps=pl.Series(rates)))

    return pl.concat(frames)


@pytest.mark.parametrize(
    ("slow", "outcome"),
    [
        ({"flow": 20}, HOLDS),
        ({"flow": 20, "ofan": 20}, PARTLY),
        ({"flow": 40}, PARTLY),
        ({"flow": 0}, PARTLY),
        ({"flow": 40, "host_dr": 0}, FAILS),
        ({"flow": 20, "ofan": 33}, FEW),
    ],
)
def test_spraying_and_one_path(slow: Mapping[str, int], outcome: Outcome) -> None:
    judgement = victims.passing_by(with_rates(slow))
    assert (judgement.verdict, judgement.seeds) == (outcome, 40)


def test_ten_seeds_do_not_show_three_quarters() -> None:
    judgement = victims.passing_by(with_rates({"flow": 5}, seeds=10))
    assert judgement.verdict == FEW
    assert {scenario.policy for scenario in scenarios() if judgement.needs(scenario)} == {
        *victims.SHOWN
    }


def scenarios() -> Sequence[Scenario]:
    return victims.scenarios(Preset("quick"))


def test_rates_are_the_victims_bytes_over_its_time() -> None:
    frame = runs({"ofan": [0.0]}, jobs_ps=f"incast=2400000000 victim={2**21 * 8000 // 100}")
    assert victims.rates(frame)["victim_gbps"].to_list() == [pytest.approx(100)]


def test_the_victim_passes_by() -> None:
    tree = FatTree(8)
    incast, victim = (job["collective"]["pairs"] for job in victims.jobs(tree))
    receivers = {receiver for _, receiver in incast}
    ((source, destination),) = victim
    pods = [tree.pod_of_host(sender) for sender, _ in incast]
    assert receivers == {0}
    assert len(set(pods)) == len(pods) == victims.SENDERS
    assert tree.pod_of_host(destination) == tree.pod_of_host(0) not in pods
    assert tree.edge_of_host(destination) != tree.edge_of_host(0)
    assert tree.edge_of_host(source) == tree.edge_of_host(incast[0][0])
    assert source not in dict(incast)


def test_its_scenarios_are_found_again_in_a_row_of_data() -> None:
    for scenario in scenarios():
        row = {**dict(dotted(plain(scenario))), "policy": scenario.policy}
        assert scenario_of(row) == scenario
