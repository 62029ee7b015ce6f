"""Packet-in and packet-out: metadata for P4Runtime is the first header for the program."""

from __future__ import annotations

from p4.v1 import p4runtime_pb2

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.specs import PacketHeader


def encode_packet_in(header: PacketHeader, frame: bytes) -> p4runtime_pb2.PacketIn:
    """Return a frame from the CPU port as a message.

    A packet that is too short for the header is payload only.
    """
    size = header.bytes
    packet = p4runtime_pb2.PacketIn(payload=frame[size:])
    if len(frame) < size:
        packet.payload = frame
        return packet

    # The controller header is bit fields: they need not lie on bytes.
    rest = int.from_bytes(frame[:size], "big")
    low = size * 8
    for field in header.fields:
        low -= field.bits
        value = rest >> low & (1 << field.bits) - 1
        packet.metadata.add(metadata_id=field.id, value=field.encode(value))

    return packet


def decode_packet_out(header: PacketHeader, packet: p4runtime_pb2.PacketOut) -> bytes:
    """Return the frame that the program receives on the CPU port."""
    values = {item.metadata_id: item.value for item in packet.metadata}
    ids = {field.id for field in header.fields}
    if len(values) != len(packet.metadata) or values.keys() != ids:
        raise EntryError(
            Code.INVALID_ARGUMENT,
            f"a packet-out has the metadata {sorted(ids)}, found {sorted(values)}",
        )

    value = 0
    for field in header.fields:
        subject = f"packet-out metadata {field.name!r}"
        value = value << field.bits | field.decode(values[field.id], subject)

    # The program's header is whole bytes: zeros at its end follow the metadata.
    padding = header.bytes * 8 - sum(field.bits for field in header.fields)
    return (value << padding).to_bytes(header.bytes, "big") + bytes(packet.payload)
