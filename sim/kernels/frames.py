"""The bytes of packets in runs with P4 programs: hosts write and read them.

A packet has a block of bytes beside its record (`sim.kernels.blocks`). The block has only the part
of a frame that programs can read; all data after it are zeros. Tables (`hostagent.forms`) have the
places of fields, so a user's packets work like ours. If `frames` is None, all functions here do
nothing: then packets are only records.
"""

from typing import NamedTuple

import numpy as np

from fattree.policies import Chooser
from hostagent.transports.roce import NAK_SYNDROME, SHARE_BITS
from sim.kernels.blocks import DIRTY, block, foresee_block, is_dirty, length_of, set_length
from sim.kernels.bundles import by_address
from sim.kernels.jit import at, inlined, load_at, turned
from sim.kernels.octets import CE, IPV4, read_16, write_16, write_checksum
from sim.kernels.outer_headers import IPV6, TUNNEL, encapsulate, wrap
from sim.kernels.planes import way_of
from sim.kernels.ports import HOST_LEVEL, passage, size_of
from sim.kernels.records import CHUNK, Records
from sim.kernels.state import ACK, ASKS, MARKED, SHORT, TRIMMED, Bytes, Int32, Int64

UDP_LENGTH_AT = 24
# Of the byte in front of a packet number: that its sender asks for an ACK.
REQUEST_BIT = 0x80
SHARE_BYTES = SHARE_BITS // 8
# So many packets ahead a host asks for a block.
AHEAD = 3
# Frames are read and written by words of so many bytes.
FRAME_WORD = 8
# The unit of a bitmap, and the form of an ACK's holes in `TRANSIT.hash`: the number of its bitmap's
# words above the lowest packet that is missing.
WORD_BITS = 32
WORDS_SHIFT = 24
LOWEST_MASK = (1 << WORDS_SHIFT) - 1

# The fields that hosts write into a flow's template, and those that they read back: rows of
# `Frames.writes` and `Frames.reads` by kind (data, ACK) and these; and the columns of
# `hostagent.forms.Run`.
LABEL, PSN, MSN, MARK, NUMBER, DESTINATION = range(6)
WRITTEN = 5
FIELDS = 6
AT, SIZE, LOW, MASK, OF = range(5)
SEGMENTS = int(Chooser.SEGMENTS)


@by_address
class Frames(NamedTuple):
    """All blocks, as words and as bytes, and the tables that hosts fill them with.

    A block has `stride` bytes from `address` on, its state begins at `state_at`. `packets` are the
    pool's, and `given` is how many blocks they have been given, of one for each and `spare` more:
    number 0, and those that threads keep; of each slot `late` has so many words. Of a frame `kept`
    bytes are kept, never the last `hidden` ones (the ICRC). Hosts write the first `host_words`
    words, and zeros stand behind them. `templates` has for every flow the beginning of its data
    packets, then of its ACKs, in words; their lengths are those of plain frames. IPv4 begins at
    `ip_at`, behind an outer header of `tunnel` bytes if a host has added it. `writes` are rows of
    runs, those of a kind's field from `first_writes` on, and `reads` has one for each; `signature`
    rows of (byte, mask, value), a kind's from `first_signature` on, and the same in words,
    `shape_masks` and `shape_values`. By kind: `shortest` frames, whether UDP follows IPv4, and
    whether packets of a flow differ in IPv4 (`changes_ipv4`). `grown` are an ACK's words that a
    bitmap lengthens, `shrunk` those of data that depend on the payload's length. `lowest` is the
    lowest packet that a SACK receiver misses, `highest` the highest that it has. Trimming leaves
    `cut` bytes of a full packet out. `sample_ps` is how often queues are looked at, 0 for never.
    """

    words: Int64
    octets: Bytes
    address: int
    packets: Records
    given: Int64
    spare: int
    late: Int64
    late_address: int
    late_words: int
    stride: int
    kept: int
    hidden: int
    host_words: int
    state_at: int
    templates: Int64
    data_length: int
    ack_length: int
    ip_at: int
    tunnel: int
    writes: Int64
    first_writes: Int64
    reads: Int64
    signature: Int64
    first_signature: Int64
    shape_masks: Int64
    shape_values: Int64
    shortest: Int64
    is_udp: Int64
    changes_ipv4: Int64
    grown: Int64
    shrunk: Int64
    agg_ips: Int64
    core_ips: Int64
    host_ips: Int64
    lowest: Int32
    highest: Int32
    cut: int
    sample_ps: int


@inlined
def shown(frames, length):
    """Return how many bytes of a frame of this length are kept."""
    return min(frames.kept, length - frames.hidden)


@inlined
def write_frame(world, frames, desk, slot, packet, way, kind, is_routed):
    """Let a host write a packet: the template of its way, and each packet's own fields."""
    if frames is not None:
        # Behind the bytes that hosts write there are zeros, as a rule still those of the packet
        # before.
        count = (frames.kept >> 3) if is_dirty(frames, desk.free, slot) else frames.host_words
        frame = block(frames, slot)
        # For a packet that comes soon.
        foresee_block(frames, min(np.int64(slot) + AHEAD, np.int64(slot) | (CHUNK - 1)))
        memory = frames.words
        octets = frames.octets
        row = (2 * np.int64(way) + kind) * (frames.kept >> 3)
        base = frame >> 3
        for word in range(count):
            memory[at(base + word)] = frames.templates[at(row + word)]

        put(frames, frame, kind, LABEL, int(packet.label))
        put(frames, frame, kind, PSN, int(packet.psn))
        # In another plane the addresses are others, and the flow's number stays.
        if world.constants.is_drawing:
            put(frames, frame, kind, NUMBER, np.int64(packet.flow) ^ np.int64(way))

        if kind != ACK and not packet.status & ASKS:
            request = frame + request_at(frames)
            memory[at(request >> 3)] &= ~(np.int64(REQUEST_BIT) << (8 * (request & 7)))

        length = write_rest(world, frames, frame, packet, kind)
        if frames.changes_ipv4[at(kind)] or world.constants.is_drawing:
            write_checksum(octets, frame + frames.ip_at)

        if is_routed and world.constants.chooser == SEGMENTS:
            encapsulate(world, frames, frame, packet, way, kind, length)
            length += IPV6
        elif is_routed:
            wrap(world, frames, frame, packet, way, kind, length)
            length += IPV4

        set_length(frames, slot, length, dirty=DIRTY if is_routed else 0)


@inlined
def put(frames, frame, kind, field, number):
    """Write a field into a frame in which it is 0, wherever the frame has it.

    Where it is not 0, `number` has the bits that change.
    """
    row = kind * WRITTEN + field
    for entry in range(frames.first_writes[at(row)], frames.first_writes[at(row + 1)]):
        writes = frames.writes
        size = writes[at(entry), SIZE]
        bits = ((number >> writes[at(entry), OF]) & writes[at(entry), MASK]) << writes[
            at(entry), LOW
        ]
        # As the last bytes of a word, or its first ones, where the frame begins; and word by word
        # of memory, as they have just been written: a processor that reads across two of these
        # waits until both are in the cache.
        where = max(writes[at(entry), AT] + size, FRAME_WORD) - FRAME_WORD
        bits = turned(bits << (8 * (where + FRAME_WORD - writes[at(entry), AT] - size)))
        word = (frame + where) >> 3
        shift = 8 * (where & 7)
        frames.words[at(word)] ^= bits << shift
        if shift > 0:
            rest = np.int64(np.uint64(bits) >> np.uint64(64 - shift))
            frames.words[at(word + 1)] ^= rest


@inlined
def get(frames, frame, kind, field, more):
    """Read a field, from where the frame has it in one piece, `more` bytes further on."""
    reads = frames.reads
    row = at(kind * FIELDS + field)
    end = reads[row, AT] + reads[row, SIZE] + (more if reads[row, AT] >= frames.ip_at else 0)
    where = max(end, FRAME_WORD) - FRAME_WORD
    number = turned(load_at(frames.address + frame + where)) >> (8 * (where + FRAME_WORD - end))
    return (number >> reads[row, LOW]) & reads[row, MASK]


@inlined
def write_rest(world, frames, frame, packet, kind):
    """Write the parts that make a frame longer or shorter than its kind; return its length."""
    if kind == ACK:
        return frames.ack_length + write_acknowledged(world, frames, frame, packet)

    less = np.int64(0)
    if packet.status & SHORT:
        packet_passage = passage(world, HOST_LEVEL, size_of(world, packet, int(packet.status)))
        less = world.constants.data_bytes - packet_passage.bytes
        grow(frames, frame, frames.shrunk, -less)

    return frames.data_length - less


@inlined
def write_acknowledged(world, frames, frame, packet):
    """Write an ACK's mark and MSN; return the length of its further fields."""
    if packet.status & MARKED:
        put(frames, frame, ACK, MARK, 1)

    if packet.status & TRIMMED:
        frames.octets[at(frame + syndrome_at(frames))] = NAK_SYNDROME

    # Only lengths of the further fields: no program looks so far.
    more = np.int64(SHARE_BYTES if world.rules.tells_share else 0)
    if world.constants.is_sack:
        holes = np.int64(packet.hash)
        put(frames, frame, ACK, MSN, holes & LOWEST_MASK)
        more += 4 * (holes >> WORDS_SHIFT)
    else:
        put(frames, frame, ACK, MSN, int(packet.log))

    if more > 0:
        grow(frames, frame, frames.grown, more)

    return more


@inlined
def grow(frames, frame, lengths, more):
    """Add `more` bytes to the length fields of a frame."""
    octets = frames.octets
    for entry in range(len(lengths)):
        where = frame + lengths[at(entry)]
        write_16(octets, where, read_16(octets, where) + more)

    write_checksum(octets, frame + frames.ip_at)


@inlined
def request_at(frames):
    """Return the byte of our data packets that asks for an ACK: it is before the packet number."""
    return frames.reads[at(PSN), AT] - 1


@inlined
def syndrome_at(frames):
    """Return where the AETH of our ACKs begins: with the byte before the MSN."""
    return frames.reads[at(ACK * FIELDS + MSN), AT] - 1


@inlined
def note_number(frames, flow, psn):
    """SACK: note that a packet has arrived, for bitmaps."""
    if frames is None:
        return

    if len(frames.highest) > 0:
        frames.highest[at(flow)] = max(int(frames.highest[at(flow)]), psn)


@inlined
def note_holes(world, frames, ack):
    """SACK: keep beside an ACK the lowest packet that is missing, and how long its bitmap is."""
    # Alone, so that numba leaves out the rest if there are no frames.
    if frames is None:
        return

    if world.constants.is_sack:
        flows = world.flows
        flow = np.int64(ack.flow)
        constant = flows.table[at(flow)]
        lowest = int(frames.lowest[at(flow)])
        while lowest < constant.packets and flows.is_received[at(constant.log + lowest)]:
            lowest += 1

        frames.lowest[at(flow)] = lowest
        # Bit 0 of a bitmap is the lowest that is missing, so it has one only beyond that.
        bits = int(frames.highest[at(flow)]) - lowest + 1
        bitmap_words = (bits + WORD_BITS - 1) // WORD_BITS if bits > 1 else 0
        ack.hash = (bitmap_words << WORDS_SHIFT) | lowest


@inlined
def is_own(world, frames, number, slot):
    """Return whether a frame is for this host, of this flow, with this number.

    Label and mark are then taken over from the bytes to the record.
    """
    if frames is not None:
        packet = world.pool.packets[at(slot)]
        frame = block(frames, slot)
        kind = int(packet.status) & ACK
        trimmed = int(packet.status) & TRIMMED
        more = tunnel_of(frames, frame)
        length = length_of(frames, slot) - more
        is_cut = trimmed > 0 and kind != ACK
        if not is_of_its_form(frames, frame, length, kind, more, is_cut):
            return False

        is_nack = trimmed > 0 and kind == ACK
        if is_nack and frames.octets[at(frame + syndrome_at(frames) + more)] != NAK_SYNDROME:
            return False

        constant = world.flows.table[at(way_of(world, int(packet.flow), number))]
        believed = int(constant.source) if kind == ACK else int(constant.destination)
        if (
            believed != number
            or get(frames, frame, kind, DESTINATION, more) != frames.host_ips[at(number)]
            or get(frames, frame, kind, NUMBER, more) != np.int64(packet.flow) & 0xFFFFFF
            or get(frames, frame, kind, PSN, more) != np.int64(packet.psn) & 0xFFFFFF
        ):
            return False

        packet.label = get(frames, frame, kind, LABEL, more)
        if kind == ACK:
            is_marked = get(frames, frame, kind, MARK, more) != 0
        else:
            is_marked = frames.octets[at(frame + frames.ip_at + more + 1)] & CE == CE
            # A user's packets always ask, in whatever way.
            if world.rules.packets_per_ack > 1:
                asks = frames.octets[at(frame + request_at(frames) + more)] & REQUEST_BIT != 0
                if asks != (int(packet.status) & ASKS != 0):
                    return False

        kept = int(packet.status) & (ASKS | SHORT)
        packet.status = kind | trimmed | kept | (MARKED if is_marked else 0)

    return True


@inlined
def tunnel_of(frames, frame):
    """Return how many bytes a host has put in front of a frame's IPv4 header."""
    octets = frames.octets
    ip = frame + frames.ip_at
    is_wrapped = octets[at(ip)] == 0x45 and octets[at(ip + 9)] == TUNNEL
    return frames.tunnel if is_wrapped else 0


@inlined
def is_of_its_form(frames, frame, length, kind, more, is_cut):
    """Return whether a frame is ours, as `hostagent.forms.is_of` does.

    A frame that a switch has cut is shorter than its length field.
    """
    octets = frames.octets
    ip_at = frames.ip_at
    if length < frames.shortest[at(kind)]:
        return False

    if more == 0:
        if not has_shape(frames, frame, kind):
            return False
    else:
        first = frames.first_signature[at(kind)]
        for entry in range(first, frames.first_signature[at(kind + 1)]):
            byte = frames.signature[at(entry), 0]
            where = frame + byte + (more if byte >= ip_at else 0)
            if octets[at(where)] & frames.signature[at(entry), 1] != frames.signature[at(entry), 2]:
                return False

    ip = frame + ip_at + more
    total = read_16(octets, ip + 2)
    if frames.is_udp[at(kind)] and total != IPV4 + read_16(octets, ip + UDP_LENGTH_AT):
        return False

    if is_cut:
        return total > length - ip_at

    return frames.shortest[at(kind)] - ip_at <= total <= length - ip_at


@inlined
def has_shape(frames, frame, kind):
    """Return whether a frame without a tunnel has all bytes of its form's signature."""
    frame_words = frames.kept >> 3
    row = kind * frame_words
    base = frame >> 3
    wrong = np.int64(0)
    # No part of the signature is behind the bytes that hosts write.
    for word in range(frames.host_words):
        bits = frames.words[at(base + word)] & frames.shape_masks[at(row + word)]
        wrong |= bits ^ frames.shape_values[at(row + word)]

    return wrong == 0
