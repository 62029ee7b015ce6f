"""Patched frames against packets that Scapy builds one by one, and the parser against anything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from hostagent import packets
from hostagent.forms import beginnings
from hostagent.packets import AckFrames, DataFrames, Ends
from hostagent.transports import roce
from hostagent.transports.roce import parse

ENDS = Ends(0x02000A000002, 0x02000A030103, 0x0A000002, 0x0A030103)
BACK = Ends(0x02000A030103, 0x02000A000002, 0x0A030103, 0x0A000002)
# The class is the IPv4 total length (design, decision 2; p4src/include).
ACK_BELOW = 256
labels = st.integers(0, 0xFFFF)
numbers = st.integers(0, 0xFFFFFF)


def headers(label: int, ecn: int) -> Packet:
    ethernet = Ether(src="02:00:0a:00:00:02", dst="02:00:0a:03:01:03")
    ip = IP(src="10.0.0.2", dst="10.3.1.3", id=0, flags="DF", ttl=64, tos=ecn)
    return ethernet / ip / UDP(sport=label, dport=4791, chksum=0)


def data_packet(flow: int, psn: int, label: int, payload_bytes: int) -> bytes:
    bth = BTH(opcode="RC_SEND_ONLY", dqpn=flow, ackreq=1, psn=psn)
    return bytes(headers(label, ecn=2) / bth / Raw(bytes(payload_bytes)))


def ack_packet(flow: int, psn: int, label: int, marked: bool, msn: int, sacked: int) -> bytes:
    bth = BTH(opcode="RC_ACKNOWLEDGE", dqpn=flow, becn=int(marked), psn=psn)
    bitmap_words = -(-sacked.bit_length() // 32)
    bitmap = sacked.to_bytes(4 * bitmap_words, "little")
    return bytes(headers(label, ecn=0) / bth / AETH(msn=msn) / Raw(bitmap))


def tunnelled(frame: bytes, source_ip: str, destination_ip: str) -> bytes:
    packet = Ether(frame)
    inner = packet[IP]
    outer = IP(src=source_ip, dst=destination_ip, proto=4, id=0, flags="DF", tos=inner.tos & 3)
    return bytes(Ether(src=packet.src, dst=packet.dst) / outer / inner)


@given(flow=numbers, psn=numbers, label=labels, payload=st.sampled_from([256, 1024, 4096]))
def test_data_frames_are_scapys_bytes(flow: int, psn: int, label: int, payload: int) -> None:
    frame = DataFrames(ENDS, flow, payload).frame(label, psn)
    assert frame == data_packet(flow, psn, label, payload)


@given(psn=numbers, label=labels, size=st.one_of(st.integers(1, 4096), st.integers(1, 300)))
def test_short_data_frames_are_scapys_bytes(psn: int, label: int, size: int) -> None:
    frame = DataFrames(ENDS, 7, 4096).frame(label, psn, less=4096 - size)
    assert frame == data_packet(7, psn, label, size)
    assert roce.is_intact(frame)


@given(
    flow=numbers,
    psn=numbers,
    label=labels,
    marked=st.booleans(),
    msn=numbers,
    sacked=st.integers(0, 2**1024 - 1),
)
def test_ack_frames_are_scapys_bytes(
    flow: int, psn: int, label: int, marked: bool, msn: int, sacked: int
) -> None:
    frame = AckFrames(ENDS, flow).frame(label, psn, marked, msn, sacked)
    assert frame == ack_packet(flow, psn, label, marked, msn, sacked)
    assert parse(frame) == roce.Packet(
        True, flow, psn, label, marked, ENDS.source_ip, ENDS.destination_ip, msn, sacked
    )
    assert roce.is_intact(frame)


def test_flows_that_share_layers_do_not_share_frames() -> None:
    first, second = DataFrames(ENDS, 1, 1024), DataFrames(BACK, 2, 1024)
    first_ack, other_ack = AckFrames(BACK, 1), AckFrames(ENDS, 2)
    assert first.frame(7, 0) == data_packet(1, 0, 7, 1024)
    assert second.frame(7, 0) != first.frame(7, 0)
    assert other_ack.frame(7, 0, True, 1, 5) == ack_packet(2, 0, 7, True, 1, 5)
    assert other_ack.frame(7, 0, False, 1) == ack_packet(2, 0, 7, False, 1, 0)
    assert first_ack.frame(7, 0, False, 1) != other_ack.frame(7, 0, False, 1)


@given(label=labels, sacked=st.sampled_from([0, 1, 2**40, 2**1024 - 1]))
def test_tunnels_are_scapys_bytes_and_are_looked_through(label: int, sacked: int) -> None:
    ack = AckFrames(ENDS, 5).frame(label, 9, False, 7, sacked)
    for plain in (DataFrames(ENDS, 5, 1024).frame(label, 9), ack):
        frame = packets.wrap(plain, ENDS.source_ip, 0x0A040101)
        assert frame == tunnelled(plain, "10.0.0.2", "10.4.1.1")
        assert parse(frame) == parse(plain)
        assert roce.is_intact(frame)


def test_scapy_dissects_what_the_fast_path_patches() -> None:
    packet = Ether(AckFrames(ENDS, 5).frame(4242, 9, True, 7))
    assert (packet[UDP].sport, packet[BTH].dqpn, packet[BTH].psn, packet[BTH].becn) == (
        4242,
        5,
        9,
        1,
    )
    assert packet[AETH].msn == 7


def test_ce_on_a_data_packet_is_a_mark_and_leaves_the_icrc_right() -> None:
    packet = Ether(DataFrames(ENDS, 5, 1024).frame(1, 2))
    packet[IP].tos = roce.CE
    packet[IP].ttl = 3
    del packet[IP].chksum
    parsed = parse(bytes(packet))
    assert parsed is not None
    assert parsed.marked
    assert roce.is_intact(bytes(packet))


@given(data=st.data())
def test_a_flipped_bit_of_what_routers_must_not_change_is_noticed(data: st.DataObject) -> None:
    frame = bytearray(DataFrames(ENDS, 5, 256).frame(1, 2))
    bit = data.draw(st.integers((roce.ETHERNET + 12) * 8, len(frame) * 8 - 1))
    frame[bit // 8] ^= 1 << bit % 8
    outside = bit // 8 in (40, 41, 46)
    assert outside or parse(bytes(frame)) is None or not roce.is_intact(bytes(frame))


@given(run=st.integers(0, 2 * roce.RUNS))
def test_the_number_of_the_run_is_the_partition_key_which_the_icrc_covers(run: int) -> None:
    for frame in (
        DataFrames(ENDS, 5, 256, run).frame(1, 2),
        AckFrames(ENDS, 5, run).frame(1, 2, False, 3, 99),
    ):
        parsed = parse(frame)
        assert parsed is not None and parsed.run == run % roce.RUNS
        assert Ether(frame)[BTH].pkey == 0xFFFF - run % roce.RUNS
        assert roce.is_intact(frame)
        forged = bytearray(frame)
        forged[roce.ETHERNET + roce.IPV4 + roce.UDP + 3] ^= 1
        assert parse(bytes(forged)) is None or not roce.is_intact(bytes(forged))


def test_a_limited_member_of_a_partition_is_none_of_ours() -> None:
    frame = bytearray(DataFrames(ENDS, 5, 256).frame(1, 2))
    frame[roce.ETHERNET + roce.IPV4 + roce.UDP + 2] &= 0x7F
    assert parse(bytes(frame)) is None


def test_lengths_are_those_of_the_wire_without_the_fcs() -> None:
    assert len(DataFrames(ENDS, 1, 4096).frame(0, 0)) == 4154
    assert len(AckFrames(ENDS, 1).frame(0, 0, False, 0)) == 62
    largest = AckFrames(ENDS, 1).frame(0, 0, False, 0, 2**1024 - 1)
    assert len(largest) - roce.ETHERNET < ACK_BELOW


def test_more_than_a_share_and_a_bitmap_of_1024_bits_is_refused() -> None:
    assert len(packets.bitmap_bytes(1 << 1055)) == 132
    with pytest.raises(ValueError, match="1056 bits, not 1057"):
        packets.bitmap_bytes(1 << 1056)


@given(frame=st.binary(max_size=300))
def test_the_parser_refuses_noise(frame: bytes) -> None:
    assert parse(frame) is None


@given(data=st.data())
def test_the_parser_survives_any_corruption(data: st.DataObject) -> None:
    frame = bytearray(packets.wrap(AckFrames(ENDS, 5).frame(1, 2, False, 3, 99), 1, 2))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    parse(bytes(frame[: data.draw(st.integers(0, len(frame)))]))


@given(near=st.integers(0, 2**40), ahead=st.integers(-(2**23), 2**23 - 1))
def test_packet_numbers_unwrap_around_their_neighbour(near: int, ahead: int) -> None:
    full = max(near + ahead, 0)
    assert roce.unwrapped_psn(full & 0xFFFFFF, near) == full


@pytest.mark.parametrize("payload", [4096, 256])
def test_the_beginnings_of_many_flows_are_those_of_their_frames(payload: int) -> None:
    remote = Ends(0x02000A070F04, 0x02000A000103, 0x0A070F04, 0x0A000103)
    flows = [ENDS, remote, BACK]
    columns = [np.array(column) for column in zip(*flows, strict=True)]
    templates = beginnings(columns, packets.Packets(payload).forms, 58)
    for flow, ends in enumerate(flows):
        data = DataFrames(ends, flow, payload).frame(0, 0)
        back = Ends(ends.destination_mac, ends.source_mac, ends.destination_ip, ends.source_ip)
        ack = AckFrames(back, flow).frame(0, 0, False, 0)
        assert templates.frames[flow, 0].tobytes() == data[:-4][:58].ljust(58, b"\0")
        assert templates.frames[flow, 1].tobytes() == ack[:58]
        assert [len(form.template) for form in templates.forms] == [len(data), len(ack)]
