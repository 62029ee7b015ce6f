"""Flows as a Perfetto trace, for https://ui.perfetto.dev: hosts as rows, computations, transfers.

The format is protocol buffers', of which a trace needs five messages; the numbers of their fields
are those of https://perfetto.dev/docs/reference/trace-packet-proto.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fattree.units import PS_PER_NS

if TYPE_CHECKING:
    import polars as pl

# Trace.packet; of TracePacket: timestamp, sequence, flags, track_event, track_descriptor.
PACKET, TIMESTAMP, SEQUENCE, FLAGS, EVENT, TRACK = 1, 8, 10, 13, 11, 60
# Of TrackDescriptor: uuid, name, parent_uuid. Of TrackEvent: type, track_uuid, name, annotations.
UUID, NAME, PARENT = 1, 2, 5
KIND, EVENT_TRACK, EVENT_NAME, NOTE = 9, 11, 23, 4
BEGIN, END = 1, 2
# Of DebugAnnotation: int_value, name.
INTEGER, NOTE_NAME = 4, 10
# SEQ_INCREMENTAL_STATE_CLEARED, in the first packet.
CLEARED = 1
ONE_SEQUENCE = 1
MORE = 0x80
LOW_BITS = 0x7F
# The wire types of protocol buffers.
VARINT, BYTES = 0, 2
COMPUTES, SENDS = "computes", "sends"
Field: TypeAlias = tuple[int, int | bytes]


class Slice(NamedTuple):
    """A transfer or computation of a host."""

    start_ps: int
    done_ps: int
    name: str
    flow: int
    packets: int


def trace(flows: "pl.DataFrame") -> bytes:
    """Return a trace of runs' flows (rows of `frames.flow_frame`)."""
    uuids = iter(range(1, 1 << 62))
    pieces = [_packet((FLAGS, CLEARED))]
    runs = flows.group_by("policy", "seed", "scenario_hash", maintain_order=True)
    for (policy, seed, _), run in runs:
        of_run = next(uuids)
        pieces.append(_track(of_run, f"{policy}, seed {seed}"))
        for (host,), rows in run.group_by("source", maintain_order=True):
            of_host = next(uuids)
            pieces.append(_track(of_host, str(host), of_run))
            for name, lane in _lanes(rows):
                pieces += _filled(next(uuids), of_host, name, lane)

    return b"".join(pieces)


def _lanes(rows: "pl.DataFrame") -> Iterator[tuple[str, list[Slice]]]:
    """Yield a host's rows of slices, none of which overlap."""
    columns = ("start_ps", "done_ps", "destination", "flow", "packets")
    slices = [
        Slice(start, done, COMPUTES if packets == 0 else f"to {destination}", flow, packets)
        for start, done, destination, flow, packets in rows.sort("start_ps", "flow")
        .select(columns)
        .iter_rows()
    ]
    for name, is_sent in ((COMPUTES, False), (SENDS, True)):
        ends: list[tuple[int, int]] = []
        lanes: list[list[Slice]] = []
        for piece in (piece for piece in slices if (piece.packets > 0) is is_sent):
            # The lane that has been free for the longest time, or a new lane.
            if ends and ends[0][0] <= piece.start_ps:
                _, lane = heappop(ends)
            else:
                lane = len(lanes)
                lanes.append([])

            lanes[lane].append(piece)
            heappush(ends, (piece.done_ps, lane))

        yield from ((name, lane) for lane in lanes)


def _filled(uuid: int, parent: int, name: str, slices: Iterable[Slice]) -> Iterator[bytes]:
    yield _track(uuid, name, parent)
    for piece in slices:
        notes = [
            (NOTE, _message((NOTE_NAME, label), (INTEGER, value)))
            for label, value in ((b"flow", piece.flow), (b"packets", piece.packets))
        ]
        begin = _message((KIND, BEGIN), (EVENT_TRACK, uuid), (EVENT_NAME, piece.name.encode()))
        yield _event(piece.start_ps, begin + _message(*notes))
        yield _event(piece.done_ps, _message((KIND, END), (EVENT_TRACK, uuid)))


def _event(time_ps: int, event: bytes) -> bytes:
    return _packet((TIMESTAMP, time_ps // PS_PER_NS), (EVENT, event))


def _track(uuid: int, name: str, parent: int = 0) -> bytes:
    above = [(PARENT, parent)] if parent else []
    return _packet((TRACK, _message((UUID, uuid), (NAME, name.encode()), *above)))


def _packet(*fields: Field) -> bytes:
    return _message((PACKET, _message(*fields, (SEQUENCE, ONE_SEQUENCE))))


def _message(*fields: Field) -> bytes:
    """Return a message in protocol buffers' wire format."""
    pieces: list[bytes] = []
    for number, value in fields:
        if isinstance(value, int):
            pieces += (_varint(number << 3 | VARINT), _varint(value))
        else:
            pieces += (_varint(number << 3 | BYTES), _varint(len(value)), value)

    return b"".join(pieces)


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > LOW_BITS:
        octets.append(value & LOW_BITS | MORE)
        value >>= 7

    octets.append(value)
    return bytes(octets)
