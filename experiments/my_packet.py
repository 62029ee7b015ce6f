"""RoCEv2 with a path behind UDP: one byte for the edge, one for the aggregation switch."""

from scapy.contrib.roce import AETH, BTH
from scapy.fields import ShortField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw


class Path(Packet):
    name = "path"
    fields_desc = [ShortField("path", 0), ShortField("reserved", 0)]


def below(flow, ecn):
    ethernet = Ether(src=flow.source_mac, dst=flow.destination_mac, type=0x0800)
    ipv4 = IP(src=flow.source_ip, dst=flow.destination_ip, id=0, flags="DF", tos=ecn, proto=17)
    return ethernet / ipv4 / UDP(sport=flow.label, dport=4791, chksum=0) / Path(path=flow.label)


def data_packet(flow):
    bth = BTH(opcode=4, pkey=flow.partition_key, dqpn=flow.number, psn=flow.psn)
    return below(flow, ecn=2) / bth / Raw(flow.payload)


def ack_packet(flow):
    bth = BTH(opcode=17, pkey=flow.partition_key, dqpn=flow.number, psn=flow.psn, becn=flow.marked)
    return below(flow, ecn=0) / bth / AETH(msn=flow.msn) / Raw(flow.bitmap)
