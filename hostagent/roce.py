"""The same packets through Scapy: for tools, captures and tests.

`hostagent.packets` is the fast form.
"""

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from fattree.addressing import colons, dotted
from hostagent.packets import ACKNOWLEDGE, CE, ECT, ROCE_PORT, SEND_ONLY, Ends, bitmap_bytes


def data_packet(ends: Ends, flow: int, psn: int, label: int, payload_bytes: int) -> Packet:
    """Return a data packet that asks for an ACK."""
    bth = BTH(opcode=SEND_ONLY, dqpn=flow, ackreq=1, psn=psn)
    return _transport(ends, label, ECT) / bth / Raw(bytes(payload_bytes))


def ack_packet(
    ends: Ends, flow: int, psn: int, label: int, marked: bool, msn: int, sacked: int = 0
) -> Packet:
    """Return an ACK, its AETH and bitmap included."""
    bth = BTH(opcode=ACKNOWLEDGE, dqpn=flow, becn=int(marked), psn=psn)
    packet = _transport(ends, label, 0) / bth / AETH(msn=msn)
    return packet / Raw(bitmap_bytes(sacked)) if sacked else packet


def tunnelled(packet: Packet, source_ip: str, destination_ip: str) -> Packet:
    """Return the packet inside IP-in-IP."""
    inner = packet[IP]
    outer = IP(src=source_ip, dst=destination_ip, proto=4, id=0, flags="DF", tos=inner.tos & CE)
    return Ether(src=packet[Ether].src, dst=packet[Ether].dst) / outer / inner


def dissect(frame: bytes) -> Packet:
    """Return Scapy's view of a frame."""
    return Ether(frame)


def _transport(ends: Ends, label: int, ecn: int) -> Packet:
    ethernet = Ether(src=colons(ends.source_mac), dst=colons(ends.destination_mac))
    ip = IP(
        src=dotted(ends.source_ip),
        dst=dotted(ends.destination_ip),
        id=0,
        flags="DF",
        ttl=64,
        tos=ecn,
    )

    return ethernet / ip / UDP(sport=label, dport=ROCE_PORT, chksum=0)
