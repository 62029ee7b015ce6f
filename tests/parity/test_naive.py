"""The rules for every network: no packet vanishes, queues fit, pointers follow their schedules."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fattree.experiment.model import Collective, Fabric, Failures, Scenario, Transport
from fattree.policies import POLICIES
from tests import naive
from tests.naive.balancers import Balancer
from tests.naive.packet import Packet
from tests.naive.plan import Group
from tests.parity.scenarios import HORIZON_PS, scenarios

BOUND_PS = 17_056_940
POLICY = st.sampled_from(list(POLICIES))


def finished(scenario: Scenario) -> naive.Network:
    try:
        return naive.run(scenario, HORIZON_PS)
    except (naive.Refused, TimeoutError):
        assume(False)
        raise


@pytest.mark.slow
@given(POLICY.flatmap(scenarios))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_packet_vanishes_and_no_queue_overflows(scenario: Scenario) -> None:
    network = finished(scenario)
    ports = network.ports.values()
    lost = sum(port.drops + port.lost for port in ports)
    lost += sum(host.link.lost for host in network.hosts)
    ended = network.received + network.unrouted + lost
    assert network.sent == ended + network.in_flight
    assert all(port.max_bytes <= (scenario.fabric.queue_bytes or naive.NEVER) for port in ports)
    assert all(len(flow.received) >= flow.packets for flow in network.flows)


@pytest.mark.parametrize("policy", POLICIES)
def test_two_opposite_flows_come_within_a_thousandth_of_the_bound(policy: str) -> None:
    pair = Collective(matrix="pairs", pairs=((0, 15), (15, 0)))
    in_step = Transport(random_phases=False)
    chosen = (
        Scenario(policy=policy, seed=seed, fabric=Fabric(k=4), collective=pair, transport=in_step)
        for seed in range(1, 9)
    )
    assert (
        next(
            cct_ps
            for cct_ps in (naive.run(scenario).cct_ps for scenario in chosen)
            if cct_ps < BOUND_PS * 1.001
        )
        >= BOUND_PS
    )


@pytest.mark.parametrize("policy", ["simple_rr", "ofan", "ofan_fib", "ofan_jsq_start"])
@pytest.mark.parametrize("rate", [0, 0.1])
def test_uplinks_are_used_in_proportion_to_their_weights(
    policy: str, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: dict[tuple[int, int, int], list[int]] = {}
    schedules: dict[tuple[int, int, int], list[int]] = {}
    choose = Balancer.choose

    def noted(self: Balancer, group: Group, packet: Packet, queues: list[int]) -> int:
        uplink = choose(self, group, packet, queues)
        pointer = self.switch, group.number, packet.kind
        chosen.setdefault(pointer, []).append(uplink)
        schedules[pointer] = group.schedules[0]
        return uplink

    monkeypatch.setattr(Balancer, "choose", noted)
    messages = Collective(matrix="permutation", message_bytes=50 * 4096)
    naive.run(
        Scenario(
            policy=policy, fabric=Fabric(k=4), collective=messages, failures=Failures(rate=rate)
        )
    )
    for pointer, uplinks in chosen.items():
        rounds, counts = len(uplinks) / len(schedules[pointer]), Counter(uplinks)
        assert all(
            abs(counts[uplink] - rounds * weight) < weight + 1
            for uplink, weight in Counter(schedules[pointer]).items()
        )
