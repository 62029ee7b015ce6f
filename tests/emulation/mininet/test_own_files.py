"""A user's files on real interfaces: packets that a Scapy function builds, and a host rule."""

import pytest

from emulation.commands.pcap import frames
from emulation.errors import NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from emulation.programs.own_program import own_program
from emulation.taps import tap_named
from fattree.experiment.model import AgentPacket, HostRule, OwnProgram, Packets, Scenario
from fattree.shape.addressing import host_ip
from fattree.texts.shipped import EXPERIMENTS
from hostagent.own_packet import scenario_packets
from hostagent.transports.roce import Packet, parse

pytestmark = [pytest.mark.root, pytest.mark.slow]
HERE = "h0_0_0"
MARKED_LABEL = 0x4321
FIXED = f"""
def next_label(state, sender, rules, packets, now_ps):
    return {MARKED_LABEL} + sender.acked % 2

def on_ack(state, sender, rules, label, marked, now_ps):
    pass
"""


@pytest.fixture(autouse=True)
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


def scenario(**more) -> Scenario:
    fabric = {"k": 4, "rate_gbps": 0.002, "latency_ns": 100}
    return Scenario(
        policy="host_pkt", fabric=fabric, collective={"message_bytes": 12 * 4096}, **more
    )


def captured(of, folder, program=None):
    """Run a scenario and return the frames that have passed a host's link, as bytes."""
    tap = tap_named(of.tree, HERE)
    setup = Setup(program=program, taps=(tap,), captured=folder, folder=folder / "ofan")
    with mininet_fabric(of, setup) as fabric:
        outcome = run_on(fabric)

    assert outcome.accounts.unaccounted == outcome.accounts.dropped == outcome.accounts.lost == 0
    assert len(outcome.flows) == 16
    (file,) = folder.glob("*.pcap")
    return [frame for _, frame, _ in frames(file)]


def sent(read: list[Packet | None], of: Scenario) -> list[Packet]:
    here = host_ip(of.tree, 0)
    return [packet for packet in read if packet and not packet.is_ack and packet.source_ip == here]


def test_hosts_send_the_packets_of_a_users_function(tmp_path):
    agent_packet = AgentPacket(file="my_packet.py", text=(EXPERIMENTS / "my_packet.py").read_text())
    chosen = scenario(agent_packet=agent_packet, packets=Packets(header_bytes=66))
    file = OwnProgram(file=str(EXPERIMENTS / "by_path.p4"), like="host_pkt")
    seen = captured(chosen, tmp_path, own_program(file, chosen.tree).program)
    read = [scenario_packets(chosen).parse(frame) for frame in seen]
    assert None not in read and len(read) >= 2 * 24
    data = sent(read, chosen)
    assert {data_packet.psn for data_packet in data} >= set(range(12)) and len(
        {data_packet.label for data_packet in data}
    ) > 6
    # The label is the path behind UDP, and its source port, which switches of ours hash.
    for frame, packet in zip(seen, read, strict=True):
        assert frame[42:46] == packet.label.to_bytes(2, "big") + b"\0\0"
        assert frame[34:36] == packet.label.to_bytes(2, "big")


def test_hosts_label_packets_by_a_users_rule(tmp_path):
    chosen = scenario(host_rule=HostRule(file="fixed.py", text=FIXED))
    data = sent([parse(frame) for frame in captured(chosen, tmp_path)], chosen)
    assert len(data) >= 12
    assert {packet.label for packet in data} == {MARKED_LABEL, MARKED_LABEL + 1}
