"""N D/D/1 against brute force, the square-root law against a random walk, flows and pointers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fattree.demand.matrices import derangement
from fattree.demand.traffic import flows
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.routes.forwarding import forwarding
from fattree.routes.groups import NONE
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from reproduction import theory
from reproduction.report.measures.queues import distinct_destinations


def works(count: int, period: int, draws: int, seed: int = 1) -> NDArray[np.float64]:
    """Draw the work at time 0 of unit jobs that arrive once a period each, at random phases."""
    # Ages are the times since the last arrivals. Work = max over t >= 0 of (arrivals in the last t)
    # - t; for a load of at most 1, one period is enough.
    ages = period * np.sort(np.random.default_rng(seed).random((draws, count)), axis=1)
    work: NDArray[np.float64] = np.maximum((np.arange(1, count + 1) - ages).max(axis=1), 0)
    return work


class TestPeriodicFlows:
    """Appendix E: "a sum of many periodic flows with random phases", the N D/D/1 model."""

    @pytest.mark.parametrize(
        ("count", "period"), [(1, 1), (1, 4), (4, 4), (7, 8), (15, 16), (60, 64)]
    )
    def test_tail_by_random_phases(self, count: int, period: int) -> None:
        draws = 40_000
        samples = works(count, period, draws)
        for work in (0.3, 1, 1.5, 3, 5):
            exact = theory.periodic_tail(count, period, work)
            assert (
                abs((samples > work).mean() - exact)
                < 4 * np.sqrt(exact * (1 - exact) / draws) + 1e-9
            )

    def test_mean_packets_by_random_phases(self) -> None:
        samples = works(60, 64, 40_000)
        assert theory.PeriodicFlows(60, 64).mean_packets() == pytest.approx(
            np.ceil(samples).mean(), rel=0.02
        )

    @given(st.integers(1, 40), st.floats(1, 3), st.floats(0, 40))
    def test_tails_fall_from_the_load_to_0(self, count: int, slack: float, work: float) -> None:
        period = count * slack
        tail = theory.periodic_tail(count, period, work)
        assert 0 <= tail <= count / period + 1e-9
        assert theory.periodic_tail(count, period, work + 0.1) <= tail + 1e-9
        assert theory.periodic_tail(count, period, count) == 0

    def test_queues_stay_bounded_at_full_load(self) -> None:
        """ "Has bounded average queue sizes even when arrival rates equal service rates"."""
        assert 0 < theory.PeriodicFlows(8, 8).mean_packets() < 8

    @pytest.mark.parametrize(("count", "period"), [(30, 32), (64, 64), (250, 256)])
    def test_the_bridge_is_near_the_exact_mean_for_many_flows(
        self, count: int, period: int
    ) -> None:
        """ "We model the superposition as a Gaussian process as k increases"."""
        model = theory.PeriodicFlows(count, period)
        assert model.bridge_mean_packets() == pytest.approx(model.mean_packets(), rel=0.1)
        steps = 0.001 * np.arange(200_000) + 0.0005
        work = 0.001 * np.exp(-2 * steps * (steps / model.flows + 1 - model.load)).sum()
        assert model.bridge_mean_packets() == pytest.approx(work + model.load / 2, rel=1e-6)

    @pytest.mark.parametrize("period", [8, 8.5, 20])
    def test_parts_of_flows_lie_between_whole_ones(self, period: float) -> None:
        below, between, above = (
            theory.PeriodicFlows(count, period).mean_packets() for count in (7, 7.5, 8)
        )
        assert between == pytest.approx((below + above) / 2)

    def test_overload_is_refused(self) -> None:
        with pytest.raises(ValueError, match="load"):
            theory.PeriodicFlows(9, 8)


class TestExpectedFlows:
    """Appendix E: "the average number of northbound flows", of an edge and of a pod."""

    @pytest.mark.parametrize("k", [4, 8])
    def test_by_random_permutations(self, k: int) -> None:
        tree, host = FatTree(k), np.arange(FatTree(k).hosts)
        orders = [derangement(seed, tree.hosts) for seed in range(300)]
        for block, expected in (
            (tree.edge_uplinks, theory.northbound_flows_of_edge(k)),
            (tree.cores, theory.northbound_flows_of_pod(k)),
        ):
            leaving = (
                np.mean([(order // block != host // block).mean() for order in orders]) * block
            )
            assert leaving == pytest.approx(expected, rel=0.01)


class TestPointers:
    """Section 6 and appendix F: "2K pointers", "63 pointers", "about k/2 - 1/4", "k/2 times" fewer
    schedules.
    """

    @pytest.mark.parametrize("k", [4, 8, 16])
    def test_switches_have_as_many_pointers_and_schedules(self, k: int) -> None:
        state = forwarding(FatTree(k), LinkState.without(FatTree(k)), POLICIES["ofan"], 1)
        used = [
            {int(state.group_schedule[group]) for group in state.groups(switch)} - {NONE}
            for switch in (0, FatTree(k).edges)
        ]
        pointers = [
            sum(state.group_schedule[list(state.groups(switch))] != NONE)
            for switch in (0, FatTree(k).edges)
        ]
        assert pointers == [theory.most_pointers_of_edge(k), theory.pointers_of_agg(k)]
        assert (pointers[0] + 1) / len(used[0]) == theory.schedule_saving(k)

    def test_printed_numbers(self) -> None:
        assert (
            theory.most_pointers_of_edge(64),
            theory.pointers_of_agg(64),
            theory.schedule_saving(64),
        ) == (2047, 63, 32)
        assert theory.expected_pointers_of_edge(64) == pytest.approx(64 / 2 - 1 / 4, abs=0.01)

    @pytest.mark.parametrize("k", [8, 16])
    def test_expected_pointers_of_an_edge_by_random_permutations(self, k: int) -> None:
        counts = []
        for seed in range(20):
            case = Scenario(fabric=Fabric(k=k), seed=seed)
            counts.append(distinct_destinations(case.tree, flows(case), case.tree.hosts_per_edge))
        assert np.mean(counts) == pytest.approx(theory.expected_pointers_of_edge(k), rel=0.03)

    @pytest.mark.parametrize("k", [4, 8, 64])
    def test_consolidation_gains_more_than_a_quarter_of_k(self, k: int) -> None:
        """ "The consolidation gain in the number of pointers is at least k^2/(4(k-1)) > k/4"."""
        assert theory.consolidation_gain(k) > k / 4


class TestSquareRootLaw:
    """Appendix D: Q(m) = sqrt(1 - 1/(k/2)) sqrt(2 m / pi), "a random walk with zero drift"."""

    @pytest.mark.parametrize("k", [4, 8, 32])
    def test_by_a_reflected_random_walk(self, k: int) -> None:
        half, packets, walks = k // 2, 1_000, 4_000
        rng, queue = np.random.default_rng(5), np.zeros(walks)
        for _ in range(packets):
            queue = np.maximum(queue + rng.binomial(half, 1 / half, walks) - 1, 0)
        assert queue.mean() == pytest.approx(theory.random_queue_packets(k, packets), rel=0.06)

    def test_four_times_the_packets_double_the_queue(self) -> None:
        assert theory.random_queue_packets(8, 4_096) == pytest.approx(
            2 * theory.random_queue_packets(8, 1_024)
        )


def test_models_take_the_papers_flows_and_periods() -> None:
    host_dr, ofan = (model(16, core=False) for model in (theory.host_dr_queue, theory.ofan_queue))
    assert (host_dr.flows, host_dr.period) == (theory.northbound_flows_of_edge(16), 8)
    assert ofan.load == pytest.approx(host_dr.load)
    assert theory.host_dr_queue(16, core=True).period == 64
    assert theory.ofan_queue(16, core=True).flows == 15
