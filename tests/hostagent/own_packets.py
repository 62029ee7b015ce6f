"""Packets of one's own, for tests: files as a user writes them."""

HEAD = """
from scapy.contrib.roce import AETH, BTH
from scapy.fields import BitField, ByteField, ShortField, X3BytesField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

def ethernet(flow, type=0x0800):
    return Ether(src=flow.source_mac, dst=flow.destination_mac, type=type)

def ipv4(flow, ecn, id=0):
    ends = {"src": flow.source_ip, "dst": flow.destination_ip}
    return IP(**ends, id=id, flags="DF", tos=ecn, proto=17)

def udp(sport):
    return UDP(sport=sport, dport=4791, chksum=0)

def data(flow):
    numbers = {"pkey": flow.partition_key, "dqpn": flow.number, "psn": flow.psn}
    return BTH(opcode=4, ackreq=1, **numbers) / Raw(flow.payload)

def ack(flow):
    numbers = {"pkey": flow.partition_key, "dqpn": flow.number, "psn": flow.psn}
    return BTH(opcode=17, becn=flow.marked, **numbers) / AETH(msn=flow.msn) / Raw(flow.bitmap)
"""
# As `hostagent.packets` builds them.
OURS = f"""{HEAD}
def data_packet(flow):
    return ethernet(flow) / ipv4(flow, 2) / udp(flow.label) / data(flow)

def ack_packet(flow):
    return ethernet(flow) / ipv4(flow, 0) / udp(flow.label) / ack(flow)
"""
SHIM = f"""{HEAD}
class Shim(Packet):
    fields_desc = [ShortField("path", 0), ShortField("type", 0x0800)]

def data_packet(flow):
    shim = Shim(path=flow.label)
    return ethernet(flow, 0x88B5) / shim / ipv4(flow, 2) / udp(49152) / data(flow)

def ack_packet(flow):
    shim = Shim(path=flow.label)
    return ethernet(flow, 0x88B5) / shim / ipv4(flow, 0) / udp(49152) / ack(flow)
"""
# The label twice, across bytes, between bytes that no field describes.
AFTER_UDP = f"""{HEAD}
class Path(Packet):
    fields_desc = [BitField("one", 1, 3), BitField("path", 0, 16), BitField("low", 0, 13)]

def path(flow):
    return Path(path=flow.label, low=flow.label & 0x1FFF)

def data_packet(flow):
    return ethernet(flow) / ipv4(flow, 2) / udp(flow.label) / path(flow) / data(flow)

def ack_packet(flow):
    return ethernet(flow) / ipv4(flow, 0) / udp(flow.label) / path(flow) / ack(flow)
"""
# The label in IPv4's identification, so that its checksum changes from packet to packet.
IN_IPV4 = f"""{HEAD}
def data_packet(flow):
    return ethernet(flow) / ipv4(flow, 2, flow.label) / udp(flow.label ^ 0) / data(flow)

def ack_packet(flow):
    return ethernet(flow) / ipv4(flow, 0, flow.label) / udp(flow.label) / ack(flow)
"""
# Not RoCE: one header of our own, no ICRC, ACKs shorter than any of ours.
OTHER = f"""{HEAD}
class Mine(Packet):
    fields_desc = [
        ByteField("kind", 0), BitField("marked", 0, 1), BitField("number", 0, 24),
        BitField("psn", 0, 24), BitField("rest", 0, 7), ShortField("run", 0), ShortField("size", 0)
    ]

def mine(flow, **more):
    numbers = {{"number": flow.number, "psn": flow.psn, "run": flow.partition_key}}
    return Mine(**numbers, **more)

def below(flow, ecn):
    return ethernet(flow) / ipv4(flow, ecn) / UDP(sport=flow.label, dport=9, chksum=0)

def data_packet(flow):
    return below(flow, 2) / mine(flow, kind=1) / Raw(flow.payload)

class Msn(Packet):
    fields_desc = [X3BytesField("msn", 0)]

def ack_packet(flow):
    header = mine(flow, kind=2, marked=flow.marked, size=len(flow.bitmap))
    return below(flow, 0) / header / Msn(msn=flow.msn) / Raw(flow.bitmap)
"""
# Their bytes around a payload, FCS included.
ALL = {
    "ours": (OURS, 62),
    "shim": (SHIM, 66),
    "after UDP": (AFTER_UDP, 66),
    "in IPv4": (IN_IPV4, 62),
    "other": (OTHER, 62),
}
