"""Figures that decide no claim: informed switches, rho_opt, mean queues, Swift's settings."""

from collections import Counter
from fractions import Fraction
from math import gcd

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.demand.flows import Message
from fattree.demand.matrices import derangement, uniform
from fattree.experiment.model import Scenario
from fattree.routes.rates import rho_max
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from reproduction.figures import mean_queues, sending_rates, swift_settings, told
from reproduction.report.figure import Data, Preset
from reproduction.report.measures.concurrent_flow import GAP, HOPS, largest_load, rho_opt, ways
from tests.fattree.brute_force import failing_trees, hops_from, paths, seeds
from tests.reproduction.report.made_up import runs

ONE = Message(1, 4096)
K4, K6 = FatTree(4), FatTree(6)
NONE = frozenset[int]()


class TestTold:
    @pytest.mark.parametrize("k", [4, 6])
    @pytest.mark.parametrize("kind", told.KINDS)
    @pytest.mark.parametrize("policy", told.POLICIES_SHOWN)
    def test_the_switches_are_those_whose_paths_change(
        self, k: int, kind: str, policy: str
    ) -> None:
        tree = FatTree(k)
        link = told.failing(tree, kind)
        failed = frozenset({link})
        weighs = policy == "ofan"
        expected = {end.switch for end in tree.link_ends(link)}
        expected |= {
            edge
            for edge in range(tree.edges)
            for target in range(tree.edges)
            if edge != target
            and self.split(tree, NONE, edge, target, weighs)
            != self.split(tree, failed, edge, target, weighs)
        }
        expected |= {
            agg
            for agg in range(tree.first_agg, tree.first_core)
            for pod in range(tree.pods)
            if self.cores_to(tree, NONE, agg, pod) != self.cores_to(tree, failed, agg, pod)
        }
        assert set(told.changed(k, kind, policy)) == expected

    def split(
        self, tree: FatTree, failed: frozenset[int], edge: int, destination: int, weighs: bool
    ) -> dict[int, int]:
        """Return how an edge splits traffic to another edge, by the paths that survive."""
        counts = Counter(path[0][1] for path in paths(tree, failed, edge, destination))
        if not weighs:
            return dict.fromkeys(counts, 1)

        divisor = gcd(*counts.values())
        return {port: count // divisor for port, count in counts.items()}

    def cores_to(self, tree: FatTree, failed: frozenset[int], agg: int, pod: int) -> set[int]:
        """Return the cores above an agg that have a link to a pod."""
        above = {end for _, end in hops_from(tree, failed, agg) if end >= tree.first_core}
        return {
            core
            for core in above
            for _, below in hops_from(tree, failed, core)
            if tree.position(below)[0] == pod != tree.position(agg)[0]
        }

    def test_the_papers_example(self) -> None:
        # All aggs at one core, all edges; the failed link's pod updates all ways out.
        changes = told.changed(8, "aggregation-core", "ofan")
        tree = FatTree(8)
        aggs = [switch for switch in changes if tree.first_agg <= switch < tree.first_core]
        assert len(aggs) == tree.pods
        assert set(range(tree.edges)) <= set(changes)
        assert {
            switch for switch, change in changes.items() if change.destinations >= change.beyond
        } == {*range(tree.edges_per_pod), tree.first_agg}

    def test_reachability_alone_concerns_few(self) -> None:
        assert len(told.changed(8, "aggregation-core", "ofan_fib")) == 9

    def test_every_row_and_picture_is_there(self) -> None:
        data = Data(Preset("quick"), (), ())
        assert len(told.table(data)) == len(told.SIZES) * 4
        assert set(told.draw(data)) == {f"{kind} link" for kind in told.KINDS}


class TestBestRate:
    @settings(max_examples=6, deadline=None)
    @given(failing_trees(st.sampled_from([K4, K6])), seeds)
    def test_bounds_hold_over_paths_that_are_walked(
        self, case: tuple[FatTree, frozenset[int]], seed: int
    ) -> None:
        tree, failed = case
        flows = uniform(np.arange(tree.hosts), derangement(seed, tree.hosts), ONE)
        every_way = ways(tree, LinkState.without(tree, failed), flows)
        if not len(every_way.demand):
            return

        routing = largest_load(every_way)
        assert routing.most <= max(routing.least, 1.0) * (1 + GAP)
        # Each pair has its walked paths, and their shares add up.
        ends = zip(flows.source.tolist(), flows.destination.tolist(), strict=True)
        asked = Counter((a // tree.hosts_per_edge, b // tree.hosts_per_edge) for a, b in ends)
        walked = [
            (count, paths(tree, failed, *pair))
            for pair, count in sorted(asked.items())
            if pair[0] != pair[1] and paths(tree, failed, *pair)
        ]
        assert [len(routing) for _, routing in walked] == np.diff(every_way.first).tolist()
        sums = np.add.reduceat(routing.shares, every_way.first[:-1])
        assert sums == pytest.approx(np.ones(len(walked)))
        # Prices are one distribution over links, and no demand is cheaper than `least`.
        assert routing.prices.sum() == pytest.approx(1)
        assert routing.prices.min() >= 0
        costs = routing.prices[every_way.links].sum(axis=1)
        parts = np.split(costs, every_way.first[1:-1])
        cheapest = sum(count * part.min() for (count, _), part in zip(walked, parts, strict=True))
        assert cheapest >= routing.least * (1 - 1e-9)

    @settings(max_examples=8, deadline=None)
    @given(failing_trees(st.sampled_from([K4, K6])), seeds)
    def test_even_splits_give_rho_max_and_the_best_no_less(
        self, case: tuple[FatTree, frozenset[int]], seed: int
    ) -> None:
        tree, failed = case
        links = LinkState.without(tree, failed)
        flows = uniform(np.arange(tree.hosts), derangement(seed, tree.hosts), ONE)
        every_way = ways(tree, links, flows)
        if not len(every_way.demand) or not failed:
            return

        even = rho_max(tree, links, flows)
        loads = every_way.loads(every_way.normal(np.ones(len(every_way.links))))
        assert 1 / max(float(loads.max()), 1.0) == pytest.approx(float(even))
        assert rho_opt(tree, links, flows)[1] >= float(even) * (1 - 1e-9)

    def test_an_edge_with_half_of_its_uplinks_halves_the_rate(self) -> None:
        links = LinkState.without(K4, frozenset({0}))
        flows = uniform(np.arange(K4.hosts), np.roll(np.arange(K4.hosts), 4), ONE)
        low, high = rho_opt(K4, links, flows)
        assert low <= 0.5 <= high * (1 + 1e-9)
        assert high - low <= GAP

    def test_what_even_splits_lose_the_best_split_finds(self) -> None:
        # Edge 0 sends a flow to edge 2, which has agg 1 alone, and a flow to edge 4, with both.
        # Even splits load its link to agg 1 with 1 + 1/2, the best splits with 1.
        failed = frozenset({K4.first_link(2)})
        links = LinkState.without(K4, failed)
        flows = uniform(np.array([0, 1]), np.array([4, 8]), ONE)
        assert rho_max(K4, links, flows) == Fraction(2, 3)
        low, high = rho_opt(K4, links, flows)
        assert low >= 1 - GAP
        assert high == 1

    def test_without_failures_nothing_is_short(self) -> None:
        flows = uniform(np.arange(K4.hosts), derangement(7, K4.hosts), ONE)
        assert rho_opt(K4, LinkState.without(K4), flows)[1] == 1

    def test_a_row_has_both_rates(self) -> None:
        rates = sending_rates.rates_of(
            Scenario.model_validate({"fabric": {"k": 4}, "failures": {"rate": 0.05}, "seed": 1})
        )
        assert rates.even == 0.75
        assert rates.best_low >= 1 - GAP
        assert HOPS == 4


class TestMeanQueues:
    def made_up(self) -> pl.DataFrame:
        """Return runs with queues that follow the laws, five layers around their mean."""
        laws = {"linear": 1.0, "sqrt(m)": 0.5, "constant": 0.0}
        frames = []
        for size in mean_queues.PACKETS:
            frame = runs(
                dict.fromkeys(mean_queues.PROVEN, (0.0, 0.0, 0.0)),
                message_bytes=size * 4096,
                name="x",
            )
            queues = [
                (1 + seed / 1000) * size ** laws[mean_queues.PROVEN[policy]]
                for policy, seed in frame.select("policy", "seed").iter_rows()
            ]
            layers = [[queue * (1 + (layer - 2) / 10) for layer in range(5)] for queue in queues]
            frames.append(frame.with_columns(sending=pl.Series(layers)))

        return pl.concat(frames)

    def test_exponents_are_the_laws_of_the_mean_over_all_layers(self) -> None:
        frame = mean_queues.averaged(self.made_up())
        exponents = mean_queues.exponents(frame)
        assert exponents["jsq"].mean == pytest.approx(1)
        assert exponents["rsq"].mean == pytest.approx(0.5)
        assert exponents["ofan"].mean == pytest.approx(0, abs=1e-9)
        first = frame.filter(pl.col("policy") == "jsq", pl.col("size") == 256, pl.col("seed") == 1)
        assert first["mean_queue"].to_list() == [pytest.approx(256.256)]

    def test_a_row_for_each_scheme_of_a_theorem(self) -> None:
        data = Data(Preset("default"), (), ())
        parts = [
            self.made_up().with_columns(name=pl.lit(name))
            for name in ("ACKs_of_1_B_without_gaps", "ACKs_as_they_are")
        ]
        data.__dict__["frame"] = pl.concat(parts)
        rows = mean_queues.table(data)
        assert rows["theorem"].to_list() == [1, 1, 2, 2, 3, 4]
        assert rows["law"].to_list() == ["Θ(m)", "Θ(m)", "Ω(√m)", "Ω(√m)", "Θ(1)", "Θ(1)"]
        assert rows["exponent, ACKs as they are"][2].startswith("0.50 ")


class TestSwiftSettings:
    def test_the_papers_figures_and_where_they_do_not_add_up(self) -> None:
        # (25 - 6.25) us at 50 Gb/s, (50 - 6.25) at 100: its 109 KB would be (15 - 6.25).
        assert swift_settings.published_queue_bytes(50) == pytest.approx(117_187.5)
        assert swift_settings.published_queue_bytes(100) == pytest.approx(546_875)

    def test_a_target_is_the_rtt_and_113_kb_at_line_rate_by_hops(self) -> None:
        for hops in swift_settings.HOPS:
            sender = swift_settings.started(hops)
            # Six links: 6.0 us of propagation, six data packets and ACKs at 800 Gb/s, 113 KB there.
            whole_us = 6.0 + 6 * (4158 + 64) * 8 / 800e3 + 113_000 * 8 / 800e3
            assert sender.target_ps / 1e6 == pytest.approx(whole_us * hops / 6, rel=1e-5)
            slot_us = (4158 + 20) * 8 / 800e3
            window = sender.window / 65536
            assert window == pytest.approx(whole_us * hops / 6 / slot_us, rel=1e-4)

    def test_the_table_has_both_sides(self) -> None:
        rows = swift_settings.table(Data(Preset("quick"), (), ()))
        by_setting = {row["setting"]: row for row in rows.iter_rows(named=True)}
        line = by_setting["packets on the line in a zero-load RTT"]
        assert (line["paper"], line["ours"]) == ("150", "150")
        assert len(rows) == 8
