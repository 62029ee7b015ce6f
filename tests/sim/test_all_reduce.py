"""An all-reduce by ring against its closed form, where no two flows share a link above an edge."""

import pytest

import sim
from fattree.bounds import Timing, one_way_ps
from fattree.experiment import Collective, Fabric, Scenario, Transport

PACKETS = 4


def closed_form_ps(scenario: Scenario) -> int:
    """Return 2 (n - 1) steps, each of which is over when its last ACK is back through a core.

    Hosts send to their successors: those whose successor is in another pod take longest, and wait
    for nobody else. A step of a few packets is sent before the first one arrives, so that ACKs
    find the link free; but its last packet starts the receiver's next step, of which a packet goes
    before the last ACK.
    """
    steps = 2 * (scenario.tree.hosts - 1)
    return steps * one_way_ps(Timing.of(scenario), PACKETS) + (steps - 1) * scenario.slot_ps


def ring(k: int, policy: str) -> Scenario:
    hosts = k**3 // 4
    collective = Collective(matrix="all_reduce", message_bytes=hosts * PACKETS * 4096)
    # Phases would come on top: half a gap a step.
    transport = Transport(random_phases=False)
    return Scenario(policy=policy, fabric=Fabric(k=k), collective=collective, transport=transport)


@pytest.mark.parametrize("policy", ["ofan", "flow"])
def test_an_all_reduce_of_16_hosts_takes_what_its_closed_form_says(policy: str) -> None:
    wanted = ring(4, policy)
    assert sim.run(wanted).cct_ps == pytest.approx(closed_form_ps(wanted), rel=1e-4)


@pytest.mark.slow
def test_an_all_reduce_of_1024_hosts_takes_what_its_closed_form_says() -> None:
    wanted = ring(16, "ofan")
    result = sim.run(wanted)
    assert result.flows.packets.sum() == 1024 * 2046 * PACKETS
    assert result.cct_ps == pytest.approx(closed_form_ps(wanted), rel=1e-4)
