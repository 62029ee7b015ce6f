"""Appendix C's probabilities against enumeration, and its pairs against brute force."""

from itertools import permutations
from math import comb

import numpy as np
import pytest

from fattree.demand.matrices import derangement
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.shape.topology import FatTree
from reproduction import theory
from reproduction.report.measures.pairs import (
    NOT_STUCK,
    red_flows,
    stuck_uplinks,
    synchronised_pairs,
)
from reproduction.report.statistics import estimate


class TestRedEdges:
    """Property 1: "(i) no internal traffic".

    "(ii) not all its flows are destined to the exact same destination edge".
    """

    def test_first_and_second_condition_at_k_4_by_enumeration(self) -> None:
        """Host i has 15 - i ends, 14 - i of them outside, whatever those before it took."""
        outside, same_edge, total = 0, 0, 0
        for first, second in permutations(range(1, 16), 2):  # its own host is 0; edge 0 is {0, 1}
            total += 1
            outside += first > 1 and second > 1
            same_edge += first > 1 and first // 2 == second // 2
        assert theory.northbound_probability(4) == pytest.approx(outside / total)
        assert theory.hotspot_probability(4) == pytest.approx(same_edge / total)

    @pytest.mark.parametrize("k", [4, 8])
    def test_red_edges_of_random_permutations(self, k: int) -> None:
        half, red = k // 2, []
        for seed in range(300):
            ends = derangement(seed, FatTree(k).hosts) // half
            red.append(red_flows(np.arange(FatTree(k).hosts) // half, ends).mean())
        share = estimate(red)
        assert abs(share.mean - theory.red_probability(k)) < 2 * share.half + 0.002

    @pytest.mark.parametrize("k", [4, 8, 16, 64])
    def test_no_internal_traffic_is_at_least_as_likely_as_the_bound(self, k: int) -> None:
        """Appendix D: "P_northbound >= 1 - (k-2)/(k^2-2)", "6/7 for k = 4"."""
        assert theory.northbound_probability(k) >= theory.no_internal_traffic_bound(k)
        assert theory.no_internal_traffic_bound(4) == pytest.approx(6 / 7)


class TestCollisions:
    """ "P_collision = P_Red^2 . P_Same aggregation . P_Same Dest edge" and, with JSQ, P_Safe^2."""

    def test_safe_flows_by_random_phases(self) -> None:
        """ "No other flows initiated their transmission within T_IPG before and after"."""
        k, gap = 16, 0.02
        phases = np.random.default_rng(2).random((20_000, k // 2))
        distance = np.abs(phases[:, 1:] - phases[:, :1])
        safe = (np.minimum(distance, 1 - distance) > gap).all(axis=1).mean()
        assert theory.safe_probability(k, gap) == pytest.approx(safe, abs=0.012)

    @pytest.mark.parametrize(
        ("k", "gap_share", "expected"),
        [
            # Red edges: 13/15 - 1/15 of them. One agg of two, one host of 13.
            (4, None, (12 / 15) ** 2 / 2 / 13),
            (4, 0.1, (12 / 15) ** 2 * 0.8**2 / 2 / 13),
        ],
    )
    def test_a_collision_in_numbers_by_hand(
        self, k: int, gap_share: float | None, expected: float
    ) -> None:
        assert theory.collision_probability(k, gap_share) == pytest.approx(expected)

    def test_jsq_has_fewer_and_the_probability_of_one_tends_to_1(self) -> None:
        gap = 20 / 4178
        sizes = (4, 8, 16, 32, 64)
        assert all(theory.expected_pairs(k, gap) < theory.expected_pairs(k) for k in sizes)
        chances = [theory.any_pair_probability(k) for k in sizes]
        assert chances == sorted(chances)
        assert chances[-1] > 1 - 1e-9

    @pytest.mark.parametrize("k", [4, 8, 16])
    def test_pairs_of_safe_flows_and_of_different_edges_are_a_share_of_all(self, k: int) -> None:
        """Of n (n - 1) / 2 pairs each flow has its edge's k/2 - 1 others; P_Safe stands squared."""
        gap, hosts = 0.05, k**3 // 4
        both_safe = ((1 - 2 * gap) ** (k / 2 - 1)) ** 2
        share = (hosts - k / 2) / (hosts - 1)

        assert theory.expected_pairs(k, gap) == pytest.approx(both_safe * theory.expected_pairs(k))
        assert theory.expected_pairs(k, same_edge=False) == pytest.approx(
            share * theory.expected_pairs(k)
        )

    @pytest.mark.parametrize("k", [8, 12])
    def test_expected_pairs_by_placing_flows_of_red_edges_at_random(self, k: int) -> None:
        half, hosts, rng, counts = k // 2, FatTree(k).hosts, np.random.default_rng(3), []
        for seed in range(200):
            ends, edge = derangement(seed, hosts) // half, np.arange(hosts) // half
            aggs = np.concatenate([rng.permutation(half) for _ in range(FatTree(k).edges)])
            counts.append(
                synchronised_pairs(np.where(red_flows(edge, ends), aggs, NOT_STUCK), ends)
            )
        pairs = estimate(counts)
        assert (
            abs(pairs.mean - theory.expected_pairs(k, same_edge=False))
            < 2 * pairs.half + 0.03 * pairs.mean
        )
        assert theory.expected_pairs(k, same_edge=False) < theory.expected_pairs(k)


class TestStickyFlows:
    """ "Each other flow will have its own sticky port": at edges without internal traffic."""

    def test_simple_rr_matches_flows_to_uplinks(self) -> None:
        case = Scenario(
            policy="simple_rr",
            fabric=Fabric(k=8),
            collective=Collective(matrix="inter_pod_permutation"),
        )
        uplinks = stuck_uplinks(case, 2_000_000).reshape(-1, 4)
        assert (np.sort(uplinks, axis=1) == np.arange(4)).all()

    def test_random_spraying_sticks_to_nothing(self) -> None:
        case = Scenario(
            policy="rsq", fabric=Fabric(k=8), collective=Collective(matrix="inter_pod_permutation")
        )
        assert (stuck_uplinks(case, 2_000_000) == NOT_STUCK).all()

    def test_pairs_are_counted_by_agg_and_destination(self) -> None:
        stuck = np.array([0, 0, 0, 1, NOT_STUCK, 1])
        destination = np.array([7, 7, 7, 7, 7, 9])
        assert synchronised_pairs(stuck, destination) == comb(3, 2)
