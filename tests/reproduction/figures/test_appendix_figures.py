"""Criteria of the appendices' figures as tables of cases, and measures of known small runs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.routes.groups import Consolidation
from fattree.shape.topology import FatTree
from reproduction.figures import (
    anchored,
    invariant,
    layer_models,
    pairs,
    pointers,
    random_queue,
    ratio,
    timeline,
)
from reproduction.report.contents import figure
from reproduction.report.figure import Preset
from reproduction.report.measures import opposite
from reproduction.report.measures.anchored import all_lost, pods_of_flows
from reproduction.report.measures.balance import link_spreads, southbound_data
from reproduction.report.measures.queues import (
    PACKETS,
    layer_queues,
    queues_as_packets_arrive,
    queues_while_sending,
)
from reproduction.report.statistics import Estimate
from reproduction.report.stored import MadeWith, stored
from reproduction.theory import PeriodicFlows, random_queue_packets
from sim import run

DATA = Path(__file__).parents[3] / "docs" / "report" / "data"
NOTHING = np.zeros(0, dtype=np.int64)


def near(mean: float, half: float = 0.1) -> Estimate:
    return Estimate(mean, half, 10)


class TestCriteria:
    @pytest.mark.parametrize(
        ("share", "predicted", "is_outside"),
        [(0.95, 1, False), (0.8, 1, True), (1.2, 1, True), (0.9, 0.85, False)],
    )
    def test_c17_formula_inside_the_interval(
        self, share: float, predicted: float, is_outside: bool
    ) -> None:
        key = 8, "jsq"
        assert pairs.outside({key: near(share)}, {key: predicted}) == ([key] if is_outside else [])

    @pytest.mark.parametrize(
        ("values", "expected"), [((0.9, 1, 1), True), ((0.9, 0.8, 1), False), ((1,), True)]
    )
    def test_c17_monotone(self, values: tuple[float, ...], expected: bool) -> None:
        assert pairs.never_falls(values) == expected

    def test_c19_and_c20_distance_from_the_exact_model(self) -> None:
        model = PeriodicFlows(8, 8)
        assert layer_models.off(near(1.1 * model.mean_packets()), model) == pytest.approx(0.1)

    @pytest.mark.parametrize(
        ("trend", "last", "expected"),
        [
            (1, near(1.5), True),
            (0.4, near(1.5), False),
            (1, near(1.1), None),
            (-1, near(0.5), False),
        ],
    )
    def test_c21_the_advantage_grows(
        self, trend: float, last: Estimate, expected: bool | None
    ) -> None:
        assert ratio.grows(trend, near(1), last) == expected

    @pytest.mark.parametrize(
        ("silenced", "slowed", "is_anchored", "fewer"),
        [(3, 0.01, True, True), (3, 0.03, True, False), (0, None, False, None)],
    )
    def test_c25_a_slower_flow_releases_some(
        self, silenced: int, slowed: float | None, is_anchored: bool, fewer: bool | None
    ) -> None:
        rows = [
            {
                "policy": "ofan",
                "seed": seed,
                "share": [0.02 + seed / 1000, silenced],
                "slowed": None if slowed is None else [slowed],
            }
            for seed in range(3)
        ]
        frame = pl.DataFrame(rows, schema_overrides={"slowed": pl.List(pl.Float64)})
        assert anchored.anchored(frame) is is_anchored
        if fewer is not None:
            assert anchored.fewer_silenced(frame).above(0) is fewer

    @pytest.mark.parametrize(("share", "expected"), [(0.9, True), (0.84, True), (0.7, False)])
    def test_c29_at_least_the_bound(self, share: float, expected: bool) -> None:
        assert random_queue.at_least(near(share, 0.02), 6 / 7) == expected

    @pytest.mark.parametrize(
        ("alone", "together", "expected"),
        [
            ((1, 1), (7, 4), True),
            ((2, 1), (1, 1), False),
            ((1, 1), (8, 4), False),
            ((0, 0), (0, 5), False),
        ],
    )
    def test_c31_spreads_are_what_rounding_explains(
        self, alone: tuple[float, float], together: tuple[float, float], expected: bool
    ) -> None:
        assert invariant.equal_rates(alone, together, (7, 4)) == expected


class TestCounts:
    """C22, C23 and C30 at sizes that are counted by hand."""

    def test_pointers_and_schedules(self) -> None:
        assert pointers.counted(4) == (7, 3, 4)
        assert pointers.uses(4, Consolidation("host", "host")) == (14, 12)
        assert pointers.uses(4, Consolidation("pod", "edge")) == (4, 6)

    def test_the_papers_schedule(self) -> None:
        assert pointers.schedule_of_example() == ([2, 2, 2, 1], [3, 2, 4, 1, 3, 2, 1])

    def test_c30_can_fail(self) -> None:
        """In a random permutation some flows stay in their pod: the formula leaves them out."""
        gains = {k: pointers.mean_gain(k) for k in (4, 32)}
        assert gains[4].above(4 / 3)
        assert gains[32].above(32**2 / (4 * 31)) is False


class TestMeasures:
    def test_a_balanced_run_has_equal_links_down(self) -> None:
        """One edge's two flows to another pod's edge: 64 packets over 2 aggs and 4 cores."""
        collective = Collective(matrix="pairs", pairs=((0, 8), (1, 9)), message_bytes=32 * 4096)
        aggs, edges = southbound_data(run(Scenario(fabric=Fabric(k=4), collective=collective)))
        assert edges[4].tolist() == [32, 32]
        assert aggs[4:6].tolist() == [[16, 16], [16, 16]]
        assert aggs.sum() == edges.sum() == 64

    def test_rotation_keeps_the_invariant_and_one_counter_does_not(self) -> None:
        collective = Collective(matrix="inter_pod_permutation", message_bytes=64 * 4096)
        values = {
            p: link_spreads(Scenario(policy=p, fabric=Fabric(k=4), collective=collective)).values
            for p in ("ofan", "simple_rr")
        }
        assert max(values["ofan"]["alone"] + values["ofan"]["pods"]) <= 1
        assert max(values["simple_rr"]["alone"]) > 10

    def test_flows_are_silenced_only_where_they_are_anchored(self) -> None:
        case = Scenario(
            fabric=Fabric(k=4),
            collective=Collective(matrix="all_to_all", message_bytes=64 * 4096),
            failures=Failures(
                events=(FailureEvent(link="agg0_0-core0_0", down_ns=10_000),), convergence_rtt=3
            ),
        )
        lost = {
            policy: all_lost(case.model_copy(update={"policy": policy}), NOTHING)
            for policy in ("ofan", "rsq")
        }
        assert lost["ofan"].any() and not lost["rsq"].any()
        touched = np.array(
            [pair // 4 != 0 and pair % 4 != 0 for pair in pods_of_flows(case).tolist()]
        )
        assert not lost["ofan"][touched].any()  # the link joins pod 0 and a core

    def test_queues_of_one_flow_alone(self) -> None:
        """No other host sends, so a port holds the packet that leaves and no other."""
        collective = Collective(matrix="pairs", pairs=((0, 15),), message_bytes=256 * 4096)
        case = Scenario(fabric=Fabric(k=4), collective=collective)
        values = queues_while_sending(case).values
        assert values["pointers"] == (1 / 8, 1 / 4)
        _, queues = layer_queues(run(case, sample_ps=31_000))
        assert queues[100:200, 4].mean() * 16 == pytest.approx(4158 / 4178, abs=0.03)

    @pytest.mark.slow
    def test_the_growth_of_random_queues(self) -> None:
        case = random_queue.scenarios(Preset("quick"))[0]
        queues = dict(zip(PACKETS, queues_as_packets_arrive(case).values["uplink"], strict=True))
        assert queues[1024] == pytest.approx(random_queue_packets(8, 1024), rel=0.2)

    def test_two_opposite_flows_do_not_beat_the_bound(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(opposite, "BLOCK", 5)
        last = FatTree(4).hosts - 1
        case = Scenario(
            fabric=Fabric(k=4), collective=Collective(matrix="pairs", pairs=((0, last), (last, 0)))
        )
        fastest = opposite.fastest_run(case)
        assert (
            fastest.cct_ps
            == min(run(case.model_copy(update={"seed": seed})).cct_ps for seed in range(1, 6))
            >= 17_056_940
        )
        assert fastest.values["sent"][-1] == 256 == fastest.values["acked"][-1]
        assert list(fastest.values["sent"]) == sorted(fastest.values["sent"])


def test_the_timeline_is_of_all_of_a_hosts_packets() -> None:
    """Subflow's fastest run is the fastest of all, and its packets are of one subflow of four."""
    data = stored([figure("timeline")], MadeWith.read(DATA), DATA)["timeline"]
    (axes,) = timeline.draw(data)["a"].axes
    last = {line.get_label(): max(line.get_ydata()) for line in axes.lines}

    assert last == {
        f"{series}, {of}": timeline.PACKETS
        for series in ("data sent", "ACKs received")
        for of in ("bound", "simulated")
    }
