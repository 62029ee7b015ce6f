"""Sorting a window's keys, and the promises of the choosers of `sim.kernels.lb` over many packets
(appendix F).
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.experiment.model import Collective, Fabric, Failures, LoadBalancer, Scenario
from sim.arrays.network import Network, build
from sim.kernels import lb
from sim.kernels.state import ACK, DATA
from sim.kernels.switches import TIME_BITS, insertion_sort, scatter

WINDOW_PS = 500_640


@given(times=st.lists(st.integers(0, WINDOW_PS - 1), min_size=17, max_size=200))
def test_scatter_and_insertion_sort_by_time_then_port(times: list[int]) -> None:
    keys = np.array(
        [(time << TIME_BITS) | index for index, time in enumerate(times)], dtype=np.int64
    )
    out, buckets = np.empty(len(times), dtype=np.int64), np.empty(len(times) + 2, dtype=np.int64)
    scatter(keys, len(times), out, buckets, WINDOW_PS)
    assert (np.diff(out >> TIME_BITS >> 19) >= 0).all()
    insertion_sort(out, len(times))
    assert out.tolist() == sorted(keys.tolist())


def network(policy: str, rate: float = 0, seed: int = 1, **options: Any) -> Network:
    return build(
        Scenario(
            policy=policy,
            seed=seed,
            fabric=Fabric(k=8),
            load_balancer=LoadBalancer(**options),
            collective=Collective(message_bytes=1),
            failures=Failures(rate=rate),
        )
    )


def uplinks(built: Network, group: int, kind: int, count: int, switch: int = 0) -> list[int]:
    packet = SimpleNamespace(hash=0)
    return [
        int(lb.uplink(built.world, built.routes[0].routes, switch, group, packet, kind, 0))
        for _ in range(count)
    ]


@given(group=st.integers(1, 31), count=st.integers(1, 90), seed=st.integers(0, 50))
def test_ofan_spreads_any_run_of_packets_evenly(group: int, count: int, seed: int) -> None:
    chosen = np.bincount(uplinks(network("ofan", seed=seed), group, DATA, count), minlength=4)
    assert chosen.max() - chosen.min() <= 1


def test_ofan_keeps_to_its_weights_within_a_cycle() -> None:
    built = network("ofan", rate=0.1, seed=4)
    routes = built.routes[0].routes
    lengths = routes.group_table.length[: routes.first_group[1]]
    group = int(lengths.argmax())
    first = routes.group_table.first[group]
    weights = np.bincount(routes.slots[first : first + lengths[group]], minlength=4)
    assert weights.max() > weights[weights > 0].min()
    chosen = np.bincount(uplinks(built, group, DATA, 7 * int(lengths[group])), minlength=4)
    assert chosen.tolist() == (7 * weights).tolist()


def test_classes_have_pointers_of_their_own() -> None:
    built = network("simple_rr")
    data = uplinks(built, 0, DATA, 4)
    assert uplinks(built, 0, ACK, 4) == data[2:] + data[:2]
    assert uplinks(built, 0, DATA, 4) == data


def test_classes_share_a_pointer_where_the_experiment_says_so() -> None:
    built = network("simple_rr", rr_pointer="shared")
    chosen = [uplinks(built, 0, kind, 1)[0] for kind in (ACK, DATA, ACK, ACK)]
    assert sorted(chosen) == [0, 1, 2, 3]
    assert uplinks(built, 0, DATA, 4) == chosen
    assert chosen[0] == uplinks(network("simple_rr"), 0, DATA, 1)[0]


def test_switch_pkt_takes_another_order_after_five_wraparounds() -> None:
    built = network("switch_pkt")
    chosen = np.array(uplinks(built, 0, DATA, 4 * 41))
    routes, cell = built.routes[0].routes, built.world.switches[0].cells
    start = int(routes.group_table.start_data[0])
    rounds = chosen[4 - start :][: 4 * 40].reshape(40, 4)
    assert all(sorted(order) == [0, 1, 2, 3] for order in rounds.tolist())
    orders = {tuple(order) for order in rounds[4::5].tolist()}
    assert 3 < len(orders) <= 8
    assert built.world.switches[0].draws == 9
    assert built.world.pointers.wraps[cell] <= 5


def test_rsq_is_uniform() -> None:
    chosen = np.bincount(uplinks(network("rsq"), 0, DATA, 4000), minlength=4)
    assert (abs(chosen - 1000) < 120).all()


@pytest.mark.parametrize(
    ("policy", "waiting", "expected"),
    [("jsq", [5, 3, 9, 3], {1, 3}), ("switch_pkt_ar", [10**6, 0, 39_999, 40_000], {1, 2})],
)
def test_adaptive_schemes_take_the_least_loaded(
    policy: str, waiting: list[int], expected: set[int]
) -> None:
    built = network(policy)
    for uplink, size in enumerate(waiting):
        built.world.links[4 + uplink].occupancy = size
    assert set(uplinks(built, 0, DATA, 100)) == expected


def test_ofan_jsq_start_begins_at_the_shortest_queue_and_rotates() -> None:
    built = network("ofan_jsq_start")
    built.world.links.occupancy[4:8] = [9, 9, 0, 9]
    assert uplinks(built, 7, DATA, 6) == [2, 3, 0, 1, 2, 3]


def test_ecmp_uses_all_paths_over_labels() -> None:
    built = network("flow")
    world, routes = built.world, built.routes[0].routes
    base = int(world.flows.table[0].hash_data)
    tree, used = built.scenario.tree, set()
    for label in range(2000):
        packet = SimpleNamespace(
            hash=base ^ int(lb.hashing.label_hash(world.hash_low, world.hash_high, label))
        )
        up = int(lb.uplink(world, routes, 0, 0, packet, DATA, 0))
        used.add((up, int(lb.uplink(world, routes, tree.agg(0, up), 0, packet, DATA, 0))))
    assert len(used) == tree.cores
