"""An all-reduce by ring against its closed form, where no two flows share a link above an edge."""

import pytest

import sim
from fattree.demand.bounds import Timing, arrival_ps, return_ps
from fattree.experiment.model import Collective, Fabric, Scenario, Transport

PACKETS = 4


def closed_form_ps(scenario: Scenario) -> int:
    """Return the longest chain of 2 (n - 1) steps, round the ring from one host to the next.

    A host passes on a message as soon as its last packet arrives, whatever ACKs are under way.
    Its first packet goes before the ACK of the message it follows, the second behind that.
    """
    tree = scenario.tree
    hosts = tree.hosts
    steps = [
        (PACKETS - 1) * scenario.slot_ps + arrival_ps(Timing.of(scenario, hops))
        for hops in (tree.hops(host, (host + 1) % hosts) for host in range(hosts))
    ]
    twice = sum(steps) * 2
    last = 2 * (hosts - 1)
    acks = (last - 1) * scenario.ack_slot_ps
    return acks + max(
        twice
        - steps[(end + 1) % hosts]
        - steps[(end + 2) % hosts]
        + return_ps(Timing.of(scenario, tree.hops(end, (end + 1) % hosts)))
        for end in range(hosts)
    )


def ring(k: int, policy: str) -> Scenario:
    hosts = k**3 // 4
    collective = Collective(matrix="all_reduce", message_bytes=hosts * PACKETS * 4096)
    # Phases would come on top: half a gap a step.
    transport = Transport(random_phases=False)
    return Scenario(policy=policy, fabric=Fabric(k=k), collective=collective, transport=transport)


@pytest.mark.parametrize("policy", ["ofan", "flow"])
def test_an_all_reduce_of_16_hosts_takes_what_its_closed_form_says(policy: str) -> None:
    scenario = ring(4, policy)
    assert sim.run(scenario).cct_ps == closed_form_ps(scenario)


@pytest.mark.slow
def test_an_all_reduce_of_1024_hosts_takes_what_its_closed_form_says() -> None:
    scenario = ring(16, "ofan")
    result = sim.run(scenario)
    assert result.flows.packets.sum() == 1024 * 2046 * PACKETS
    assert result.cct_ps == closed_form_ps(scenario)
