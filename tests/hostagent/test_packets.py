"""The fast packets against Scapy's, and the parser against anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP

from hostagent import packets, roce
from hostagent.packets import AckFrames, DataFrames, Ends, parse

ENDS = Ends(0x02000A000002, 0x02000A030103, 0x0A000002, 0x0A030103)
labels = st.integers(0, 0xFFFF)
numbers = st.integers(0, 0xFFFFFF)


@given(flow=numbers, psn=numbers, label=labels, payload=st.sampled_from([256, 1024, 4096]))
def test_data_frames_are_scapys_bytes(flow: int, psn: int, label: int, payload: int) -> None:
    assert DataFrames(ENDS, flow, payload).frame(label, psn) == bytes(
        roce.data_packet(ENDS, flow, psn, label, payload)
    )


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
    assert frame == bytes(roce.ack_packet(ENDS, flow, psn, label, marked, msn, sacked))
    assert parse(frame) == packets.Packet(
        True, flow, psn, label, marked, ENDS.source_ip, ENDS.destination_ip, msn, sacked
    )
    assert packets.is_intact(frame)


def test_tunnels_are_scapys_bytes_and_are_looked_through() -> None:
    plain = DataFrames(ENDS, 5, 1024).frame(77, 9)
    frame = packets.wrap(plain, ENDS.source_ip, 0x0A040101)
    assert frame == bytes(roce.tunnelled(roce.dissect(plain), "10.0.0.2", "10.4.1.1"))
    assert parse(frame) == parse(plain)
    assert packets.is_intact(frame)


def test_scapy_dissects_what_the_fast_path_builds() -> None:
    packet = roce.dissect(AckFrames(ENDS, 5).frame(4242, 9, True, 7))
    assert (packet[UDP].sport, packet[BTH].dqpn, packet[BTH].psn, packet[BTH].becn) == (
        4242,
        5,
        9,
        1,
    )
    assert packet[AETH].msn == 7


def test_ce_on_a_data_packet_is_a_mark_and_leaves_the_icrc_right() -> None:
    packet = roce.dissect(DataFrames(ENDS, 5, 1024).frame(1, 2))
    packet[IP].tos = packets.CE
    packet[IP].ttl = 3
    del packet[IP].chksum
    parsed = parse(bytes(packet))
    assert parsed is not None
    assert parsed.marked
    assert packets.is_intact(bytes(packet))


@given(data=st.data())
def test_a_flipped_bit_of_what_routers_must_not_change_is_noticed(data: st.DataObject) -> None:
    frame = bytearray(DataFrames(ENDS, 5, 256).frame(1, 2))
    bit = data.draw(st.integers((packets.ETHERNET + 12) * 8, len(frame) * 8 - 1))
    frame[bit // 8] ^= 1 << bit % 8
    outside = bit // 8 in (40, 41, 46)
    assert outside or parse(bytes(frame)) is None or not packets.is_intact(bytes(frame))


def test_lengths_are_those_of_the_wire_without_the_fcs() -> None:
    assert len(DataFrames(ENDS, 1, 4096).frame(0, 0)) == 4154
    assert len(AckFrames(ENDS, 1).frame(0, 0, False, 0)) == 62
    largest = AckFrames(ENDS, 1).frame(0, 0, False, 0, 2**1024 - 1)
    assert len(largest) - packets.ETHERNET < packets.ACK_BELOW


def test_a_bitmap_beyond_1024_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="1024 bits, not 1025"):
        packets.bitmap_bytes(1 << 1024)


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
    assert packets.unwrapped_psn(full & 0xFFFFFF, near) == full
