"""Scenario -> arrays: who is connected to whom, hashes, outages, pools, routes."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario, Transport
from fattree.policies import POLICIES
from fattree.shape.addressing import host_ip
from hostagent.transports.roce import ROCE_PORT, UDP_PROTOCOL
from hostagent.transports.state import NEVER
from sim.arrays.network import build
from sim.arrays.wiring import grown
from sim.kernels.lb.hashing import label_hash, product
from sim.kernels.state import SPARE


@pytest.mark.parametrize("k", [2, 4, 8])
def test_inputs_are_the_far_ends_outputs(k: int) -> None:
    scenario = Scenario(fabric=Fabric(k=k), collective=Collective(message_bytes=1))
    tree, inputs = scenario.tree, build(scenario).world.inputs
    for switch in range(tree.switches):
        for port in tree.ports(switch):
            far = tree.neighbour(switch, port)
            host_link = tree.first_port(tree.switches) + tree.host_at(switch, port)
            assert inputs[tree.first_port(switch) + port - 1] == (
                tree.first_port(far.switch) + far.port - 1 if far else host_link
            )


@given(label=st.integers(0, 0xFFFF), flow=st.integers(0, 15))
def test_hash_is_the_crc_of_the_five_tuple(label: int, flow: int) -> None:
    network = build(Scenario(fabric=Fabric(k=4), collective=Collective(message_bytes=1)))
    world, row = network.world, network.world.flows.table[flow]
    ends = [host_ip(network.scenario.tree, int(host)) for host in (row.source, row.destination)]
    for (source, destination), base in ((ends, row.hash_data), (ends[::-1], row.hash_ack)):
        content = source.to_bytes(4, "big") + destination.to_bytes(4, "big") + bytes([UDP_PROTOCOL])
        content += label.to_bytes(2, "big") + ROCE_PORT.to_bytes(2, "big")
        assert int(base) ^ int(label_hash(world.hash_low, world.hash_high, label)) == crc32(content)


@given(left=st.integers(0, 2**32 - 1), right=st.integers(0, 2**32 - 1))
def test_product_is_that_of_32_bit_integers(left: int, right: int) -> None:
    assert product(left, right) == left * right % 2**32


def test_outages_are_in_order_on_both_directions_of_a_link() -> None:
    events = (
        FailureEvent(link="agg0_0-core0_1", down_ns=3, up_ns=4),
        FailureEvent(link="agg0_0-core0_1", down_ns=1, up_ns=2),
        FailureEvent(link="edge1_0-agg1_1", down_ns=5),
    )
    scenario = Scenario(
        fabric=Fabric(k=4), collective=Collective(message_bytes=1), failures=Failures(events=events)
    )
    world, tree = build(scenario).world, scenario.tree
    up, down = tree.first_port(tree.agg(0, 0)) + 3, tree.first_port(tree.core(0, 1))
    for number in (up, down):
        link, ledger = world.links[number], world.ledgers[number]
        rows = world.outages[ledger.outage : ledger.outage + 3].tolist()
        assert rows == [[1_000, 2_000], [3_000, 4_000], [NEVER, NEVER]]
        assert [link.down_ps, ledger.up_ps] == rows[0]
    assert (world.links.down_ps < NEVER).sum() == 4


def test_routes_follow_each_change_after_g() -> None:
    event = FailureEvent(link="agg0_0-core0_1", down_ns=100, up_ns=1_000)
    scenario = Scenario(fabric=Fabric(k=4), failures=Failures(events=(event,), convergence_rtt=1))
    times = [epoch.time_ps for epoch in build(scenario).routes]
    assert times == [0, 100_000 + scenario.zero_load_rtt_ps, 1_000_000 + scenario.zero_load_rtt_ps]


def test_grown_pool_keeps_what_it_holds() -> None:
    world = build(Scenario(fabric=Fabric(k=2), collective=Collective(message_bytes=1))).world
    spare, chunks = int(world.counters[SPARE]), len(world.pool.spare)
    world.pool.packets.psn[:] = np.arange(len(world.pool.packets))
    bigger = grown(world.pool, 50, world.counters)
    assert world.counters[SPARE] == spare + 50
    assert (bigger.packets.psn[: len(world.pool.packets)] == world.pool.packets.psn).all()
    assert sorted(bigger.spare[: spare + 50].tolist())[-50:] == list(range(chunks, chunks + 50))


@settings(max_examples=25, deadline=None)
@given(
    policy=st.sampled_from(list(POLICIES)),
    rate=st.sampled_from([0, 0.1]),
    seed=st.integers(0, 1000),
)
def test_slots_lead_to_uplinks_and_groups_to_schedules(policy: str, rate: float, seed: int) -> None:
    scenario = Scenario(policy=policy, seed=seed, fabric=Fabric(k=4), failures=Failures(rate=rate))
    network = build(scenario)
    routes = network.routes[-1].routes
    assert (routes.slots < scenario.tree.most_uplinks).all()
    rows = network.world.switches.row[: scenario.tree.first_core]
    switch = np.repeat(np.arange(len(rows)), np.diff([*rows, len(routes.groups)]))
    has_path = routes.groups >= 0
    used = routes.group_table[(routes.first_group[switch] + routes.groups)[has_path]]
    assert (used.first + used.length <= len(routes.slots)).all()
    if len(routes.weights):
        assert routes.weights[used.schedule].sum(axis=1).tolist() == used.length.tolist()


def test_rings_and_logs_do_not_overlap() -> None:
    scenario = Scenario(fabric=Fabric(k=4), transport=Transport(recovery="sack"))
    flows = build(scenario).world.flows
    assert (np.diff(flows.table.ring) == flows.table.ring_length[:-1]).all()
    assert len(flows.arrivals) == flows.table.packets.sum()
