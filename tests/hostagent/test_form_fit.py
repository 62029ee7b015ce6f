"""Load balancers of ours that the user's packets make others are named, and no others."""

import pytest

from fattree.experiment.model import AgentPacket, Collective, Fabric, Packets, Scenario
from hostagent.form_fit import misfits
from tests.hostagent.own_packets import HEAD, OURS, SHIM

# The label where only hosts look for it, between UDP and the BTH.
BEHIND_UDP = f"""{HEAD}
class Path(Packet):
    fields_desc = [ShortField("path", 0)]

def data_packet(flow):
    return ethernet(flow) / ipv4(flow, 2) / udp(49152) / Path(path=flow.label) / data(flow)

def ack_packet(flow):
    return ethernet(flow) / ipv4(flow, 0) / udp(49152) / Path(path=flow.label) / ack(flow)
"""
HALF = BEHIND_UDP.replace("udp(49152)", "udp(flow.label & 0xFF)")
ONE_PAIR = Collective(matrix="pairs", pairs=((0, 9), (0, 9)), message_bytes=1)


def said(text: str, *policies: str, collective: Collective | None = None) -> list[str]:
    packet = AgentPacket(file="mine.py", text=text)
    sizes = Packets(payload_bytes=300, header_bytes=66)
    sent = collective or Collective(message_bytes=1)
    return misfits(
        Scenario(
            fabric=Fabric(k=4), policy=slug, agent_packet=packet, packets=sizes, collective=sent
        )
        for slug in policies
    )


def test_packets_that_have_all_where_ours_have_it_are_said_nothing_about() -> None:
    assert said(OURS, "host_pkt", "subflow", "themis", "ofan", "flow") == []


def test_a_label_that_is_not_hashed_is_told_for_all_whose_hosts_choose_by_it() -> None:
    (ecmp, themis) = said(BEHIND_UDP, "host_pkt", "subflow", "themis", "jsq", "ofan", "host_dr")
    assert ecmp == (
        "no fair comparison with Host Pkt, Subflow: its switches hash the five-tuple, where"
        " mine.py has none of the 16 bits of flow.label (UDP's sport is the place for it)"
    )
    assert themis == (
        "no fair comparison with Themis: its switches take the PSN of a BTH behind UDP,"
        " where mine.py has no flow.psn"
    )


def test_half_a_label_is_told_as_half() -> None:
    (line,) = said(HALF, "host_pkt")
    assert "has 8 of the 16 bits of flow.label" in line


@pytest.mark.parametrize("collective, lines", [(None, 0), (ONE_PAIR, 1)])
def test_ecmp_by_flow_needs_the_label_where_flows_have_equal_ends(
    collective: Collective | None, lines: int
) -> None:
    assert len(said(BEHIND_UDP, "flow", collective=collective)) == lines


def test_a_header_that_our_programs_do_not_know_is_told() -> None:
    (line,) = said(SHIM, "ofan")
    assert "no header between Ethernet and IPv4" in line
