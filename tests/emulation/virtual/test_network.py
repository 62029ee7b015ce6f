"""The virtual network as a whole: repeatable, tight against the bound, and with an account of every
packet.
"""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.fabric_controller import LinkChange
from emulation.errors import EmulationError, UnsupportedError
from emulation.outcomes.outcome import Outcome
from emulation.virtual import fabric as fabric_module
from emulation.virtual.control import SwitchDraws
from emulation.virtual.events import Kind
from emulation.virtual.fabric import VirtualFabric
from fattree.demand.traffic import flows
from fattree.draws import Stream, component, mix
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Scenario,
)
from fattree.routes import failures
from fattree.routes.bounds import bound_ps
from fattree.routes.demand import Demand
from fattree.routes.failures import outages
from fattree.shape.topology import LAYERS, FatTree
from tests.python_network.wires import Wire

SMALL = Collective(message_bytes=32 * 4096)
K4 = Fabric(k=4)


def scenario(policy: str = "ofan", **settings: Any) -> Scenario:
    return Scenario(policy=policy, **{"fabric": K4, "collective": SMALL, **settings})


def run(policy: str = "ofan", **settings: Any) -> Outcome:
    return VirtualFabric(scenario(policy, **settings)).run()


def test_one_seed_gives_one_event_log_and_another_seed_another() -> None:
    first, again, reseeded = (
        run("host_pkt", seed=1),
        run("host_pkt", seed=1),
        run("host_pkt", seed=2),
    )
    assert first.digest == again.digest
    assert first.flows == again.flows
    assert first.digest != reseeded.digest


@pytest.mark.parametrize(("k", "policy", "seed"), [(4, "flow", 74), (8, "ofan", 1)])
def test_two_opposite_flows_come_within_a_thousandth_of_the_bound(
    k: int, policy: str, seed: int
) -> None:
    last = k**3 // 4 - 1
    pairs = Collective(matrix="pairs", pairs=((0, last), (last, 0)))
    chosen = scenario(policy, seed=seed, fabric=Fabric(k=k), collective=pairs)
    bound = bound_ps(chosen, flows(chosen))
    assert bound == 17_056_940 - chosen.ack_slot_ps
    assert 0 <= VirtualFabric(chosen).run().cct_ps - bound <= bound / 1000


@pytest.mark.parametrize("policy", ["flow", "simple_rr", "ofan"])
def test_every_packet_is_accounted_for_when_links_fail_and_queues_overflow(policy: str) -> None:
    events = (
        FailureEvent(link="agg0_0-core0_0", down_ns=1500),
        FailureEvent(link="edge1_0-agg1_1", down_ns=1600, up_ns=9000),
    )
    outcome = run(
        policy,
        fabric=Fabric(k=4, queue_bytes=20_000),
        failures=Failures(events=events, convergence_rtt=1),
    )
    accounts = outcome.accounts
    assert accounts.unaccounted == 0
    assert accounts.lost > 0
    assert accounts.lost == sum(port.lost_to_failure for port in outcome.ports)
    assert accounts.dropped == sum(port.dropped for port in outcome.ports)
    assert all(flow.transmissions >= flow.packets for flow in outcome.flows)


def test_fifty_reinstallations_neither_lose_nor_misroute_a_packet() -> None:
    fabric = VirtualFabric(scenario(collective=Collective(message_bytes=128 * 4096)))
    fabric.controller.convergence_ps = 0
    links = [frozenset({17}), frozenset({0, 21})]
    for number in range(50):
        plan = links[number // 2 % 2]
        change = LinkChange(up=plan) if number % 2 else LinkChange(down=plan)
        fabric.timed.at((number + 1) * 100_000, Kind.LINK, partial(fabric.change_links, change))
    outcome = fabric.run()
    assert outcome.end_ps > 50 * 100_000
    assert outcome.accounts.received + outcome.accounts.in_flight == outcome.accounts.sent
    assert outcome.accounts.unaccounted == 0


def test_a_flow_that_routes_never_lead_around_a_dead_link_is_named_at_the_horizon() -> None:
    dead = (FailureEvent(link="edge0_0-agg0_0", down_ns=0),)
    stuck = scenario("flow", failures=Failures(events=dead, convergence_rtt=float("inf")))
    with pytest.raises(
        EmulationError, match=r"at 30\.000 µs, \d flows are not complete: h0_0_1 to "
    ):
        VirtualFabric(stuck).run(horizon_ps=30_000_000)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"load_balancer": LoadBalancer(queue_staleness_ns=1)}, "whole microseconds"),
        ({"controller": Controller(detection="netlink")}, "no kernel interfaces"),
    ],
)
def test_what_virtual_time_does_not_offer_is_refused(option: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        VirtualFabric(scenario(**option))


def test_a_16_bit_draw_is_the_upper_half_of_the_switchs_number() -> None:
    draws = SwitchDraws(7, 3)
    numbers = [int(mix(7, component(Stream.SWITCH, 3), n)) for n in range(3)]
    assert [draws(0, 65535), draws(0, 15), draws(5, 5)] == [numbers[0] >> 16, numbers[1] >> 28, 5]


@pytest.mark.parametrize("k", [2, 4, 6])
def test_ports_know_their_layer_and_their_link(k: int) -> None:
    tree = FatTree(k)
    for link in range(tree.links):
        lower, upper = tree.link_ends(link)
        assert tree.link_at(*lower) == link == tree.link_at(*upper)
        assert (tree.layer_of(*lower), tree.layer_of(*upper)) in [
            (LAYERS[1], LAYERS[4]),
            (LAYERS[2], LAYERS[3]),
        ]
    assert tree.layer_of(0, 1) == LAYERS[5]


@given(
    times=st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True),
    probe=st.integers(0, 60),
)
def test_a_port_is_down_between_failure_and_repair(times: list[int], probe: int) -> None:
    link = frozenset({3})
    changes = [
        failures.LinkChange(
            time, frozenset() if index % 2 else link, link if index % 2 else frozenset()
        )
        for index, time in enumerate(sorted(times))
    ]
    events = failures.Timeline(tuple(changes), frozenset(), (), 0)
    wire = Wire(outages(events.changes)[3])
    assert wire.is_down(probe) == (sum(time <= probe for time in times) % 2 == 1)


@pytest.mark.parametrize(("shift", "is_hashed"), [(-1, False), (0, False), (1, True)])
def test_runs_of_few_packets_have_a_digest(
    shift: int, is_hashed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = scenario()
    # Data and ACKs of up to five switches each.
    packets = 2 * 5 * int(Demand.of(small).flows.packets.sum())
    monkeypatch.setattr(fabric_module, "FEW_PACKETS", packets + shift)
    assert bool(VirtualFabric(small).run().digest) is is_hashed
    assert VirtualFabric(small, has_digest=False).run().digest == ""
