"""The form of a packet, found by comparing frames.

The builder of frames (`hostagent.packets`, or a function of the user's) builds some that differ in
one field. A bit that changes with bit i of the field, and only with it, is a copy of that bit;
lengths are the words that grow with a bitmap, or shrink with a payload. Frames of random values
then show whether the form is right.
"""

import random
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fattree.errors import ExperimentError
from hostagent.forms import (
    ACK,
    BITMAPS,
    BITS,
    DATA,
    FIELDS,
    KINDS,
    NEEDED,
    Built,
    Form,
    Forms,
    Request,
    Run,
    write,
)
from hostagent.transports.roce import (
    ICRC,
    IPV4,
    ROCE_PORT,
)

CHECKS = 6
# So many bytes less than a full payload, of which there are 256 at least.
SHORTER = (0, 1, 2, 255)
VERSION_4_NO_OPTIONS = 0x45
# "More fragments" and the fragment's offset, in IPv4's bytes 6 and 7.
FRAGMENT = (0x3F, 0xFF)
_PORT = ROCE_PORT.to_bytes(2, "big")


def requests() -> list[Request]:
    """Return requests for the frames that `found` compares, in its order."""
    # Bitmaps end with ones, as a last word of zeros would be left out.
    asked: list[Request] = []
    for kind in (DATA, ACK):
        asked.append(Request(kind, {}))
        asked += [Request(kind, {field: code}) for field in FIELDS for code in _codes(BITS[field])]
        if kind == ACK:
            asked += [Request(kind, {}, b"\xff" * size) for size in BITMAPS if size]
        else:
            asked += [Request(kind, {}, less=less) for less in SHORTER if less]

        asked += _checks(kind)

    return asked


def _codes(bits: int) -> list[int]:
    """Return values that encode a copied bit's number, counted from 1: its bit j is in code j."""
    return [
        sum(1 << bit for bit in range(bits) if (bit + 1) >> j & 1) for j in range(bits.bit_length())
    ]


def _checks(kind: int) -> list[Request]:
    draw = random.Random(kind)
    return [
        Request(
            kind,
            {field: draw.getrandbits(bits) for field, bits in BITS.items()},
            b"\xff" * draw.choice(BITMAPS) if kind == ACK else b"",
            less=draw.choice(SHORTER) if kind == DATA else 0,
        )
        for _ in range(CHECKS)
    ]


def found(built: Sequence[Built], name: str) -> Forms:
    """Return the forms of frames that were built as `requests` asks.

    Errors call the frames' builder `name`. Raises ExperimentError.
    """
    asked = requests()
    half = next(i for i, request in enumerate(asked) if request.kind == ACK)
    data = _form(asked[:half], built[:half], f"{name}: data_packet")
    ack = _form(asked[half:], built[half:], f"{name}: ack_packet")
    if data.ip_at != ack.ip_at:
        raise ExperimentError(
            f"{name}: IPv4 begins at byte {data.ip_at} of data_packet's frames and at"
            f" {ack.ip_at} of ack_packet's: it must be the same"
        )

    forms = Forms(_signed(data, ack, name), _signed(ack, data, name))
    for request, (frame, _) in zip(asked, built, strict=True):
        written = write(forms[request.kind], *request[1:])
        end = len(frame) - forms[request.kind].hidden
        if written[:end] != frame[:end]:
            raise ExperimentError(_misunderstood(name, request, written, frame))

    return forms


def _misunderstood(name: str, request: Request, written: bytearray, frame: bytes) -> str:
    where = next((i for i, (a, b) in enumerate(zip(written, frame, strict=False)) if a != b), -1)
    return (
        f"{name}: {KINDS[request.kind]}_packet: byte {where} of the frame is made of the flow's"
        " fields in a way that hosts cannot follow: what differs from packet to packet must be"
        " copies of fields (for a checksum other than IPv4's give a number, as in UDP(chksum=0))"
    )


def _form(asked: Sequence[Request], built: Sequence[Built], who: str) -> Form:
    base = built[0].frame
    bth_at = built[0].bth_at
    hidden = ICRC if bth_at else 0
    if any(
        len(answer.frame) - len(request.bitmap) + request.less != len(base)
        or answer.bth_at != bth_at
        for request, answer in zip(asked, built, strict=True)
    ):
        raise ExperimentError(
            f"{who}: frames differ in length or layers: a frame must be as long as its"
            f" flow.{'payload' if asked[0].kind == DATA else 'bitmap'} and what all have"
        )

    plain = [
        answer for answer, request in zip(built, asked, strict=True) if len(request.values) == 1
    ]
    copies = _copies(base, [answer.frame for answer in plain], hidden)
    ip_at = _ipv4_at(base, copies, who)
    runs = {field: _runs(numbers, ip_at) for field, numbers in copies.items()}
    for field in NEEDED[DATA if asked[0].kind == DATA else ACK]:
        if not any(run.mask == (1 << BITS[field]) - 1 for run in runs[field]):
            raise ExperimentError(
                f"{who}: flow.{field} ({BITS[field]} bits) must stand in the frame, in one piece:"
                " hosts read it from what arrives"
            )

    resized = [
        answer.frame
        for answer, request in zip(built, asked, strict=True)
        if (request.bitmap or request.less) and not request.values
    ]
    lengths = _lengths(base, resized, ip_at, hidden)
    return Form(base, runs, (), lengths, ip_at, bth_at, hidden)


def _copies(base: bytes, frames: Sequence[bytes], hidden: int) -> dict[str, NDArray[np.int64]]:
    """Return for each field the number of its bit that each bit of a frame copies, -1: none."""
    end = len(base) - hidden
    bits = np.unpackbits(np.frombuffer(base[:end], dtype=np.uint8))
    numbers: dict[str, NDArray[np.int64]] = {}
    rest = iter(frames)
    for field, width in BITS.items():
        number = np.full(len(bits), -1, dtype=np.int64)
        for j in range(width.bit_length()):
            changed = np.unpackbits(np.frombuffer(next(rest)[:end], dtype=np.uint8))
            number += (changed ^ bits).astype(np.int64) << j

        # A number beyond the field's bits is no copy: frames of random values show it.
        numbers[field] = np.where(number < width, number, -1)

    return numbers


def _ipv4_at(base: bytes, copies: Mapping[str, NDArray[np.int64]], who: str) -> int:
    """Return where the first IPv4 header begins, by its addresses."""
    descending = list(range(31, -1, -1))
    for ip_at in range(len(base) - IPV4 + 1):
        source, destination = (
            copies[field][8 * (ip_at + offset) : 8 * (ip_at + offset) + 32].tolist()
            for field, offset in (("source_ip", 12), ("destination_ip", 16))
        )
        if base[ip_at] == VERSION_4_NO_OPTIONS and source == destination == descending:
            return ip_at

    raise ExperimentError(
        f"{who}: there is no IPv4 header without options and with flow.source_ip and"
        " flow.destination_ip in it, by which switches forward"
    )


def _runs(number: NDArray[np.int64], ip_at: int) -> tuple[Run, ...]:
    """Return the runs of a field, from the number of its bit that each bit of a frame copies."""
    runs: list[Run] = []
    checksum = range(8 * (ip_at + 10), 8 * (ip_at + 12))
    bits = [bit for bit in np.flatnonzero(number >= 0).tolist() if bit not in checksum]
    first = 0
    for i in range(len(bits)):
        is_last = i + 1 == len(bits)
        if is_last or bits[i + 1] != bits[i] + 1 or number[bits[i + 1]] != number[bits[i]] - 1:
            begin, end = bits[first], bits[i] + 1
            start, stop = begin // 8, -(-end // 8)
            mask = (1 << end - begin) - 1
            runs.append(Run(start, stop - start, 8 * stop - end, mask, int(number[end - 1])))
            first = i + 1

    return tuple(runs)


def _lengths(base: bytes, resized: Sequence[bytes], ip_at: int, hidden: int) -> tuple[int, ...]:
    """Return the offsets of the words with the frame's length, IPv4's total length first."""
    total_at = ip_at + 2
    ignored = {total_at, total_at + 1, ip_at + 10, ip_at + 11}
    # The low byte of a length changes by a little first, and both by 128.
    ends = {
        index
        for frame in resized[:2]
        for index in range(min(len(base), len(frame)) - hidden)
        if frame[index] != base[index] and index not in ignored
    }
    return (total_at, *(index - 1 for index in sorted(ends) if index + 1 not in ends))


def _signed(form: Form, other_form: Form, name: str) -> Form:
    """Return a form with its signature: IPv4's fixed bits, and bits that differ in `other_form`."""
    ip_at = form.ip_at
    base = form.template
    rows = [(ip_at, 0xFF, base[ip_at])]
    rows += [(ip_at + 6 + i, mask, base[ip_at + 6 + i] & mask) for i, mask in enumerate(FRAGMENT)]
    rows.append((ip_at + 9, 0xFF, base[ip_at + 9]))

    # The two bytes in front of IPv4, which announce it, and RoCEv2's port.
    lengths = {index + i for index in form.lengths for i in range(2)}
    before = [index for index in (ip_at - 2, ip_at - 1) if index not in lengths]
    rows += [(index, _constant(form, index), base[index]) for index in before]
    if form.is_udp and base[ip_at + 22 : ip_at + 24] == _PORT:
        rows += [(ip_at + 22 + i, 0xFF, _PORT[i]) for i in range(2)]

    differing = _differing(form, other_form)
    if differing is None:
        raise ExperimentError(
            f"{name}: nothing tells an ACK from data: one byte outside of IPv4 that is no length"
            " must differ, as an opcode does"
        )

    mask = _constant(form, differing) & _constant(other_form, differing)
    rows.append((differing, mask, base[differing] & mask))
    return form._replace(
        signature=tuple((index, mask, value & mask) for index, mask, value in rows)
    )


def _differing(form: Form, other_form: Form) -> int | None:
    """Return the first byte in which frames of two forms always differ."""
    ip_at = form.ip_at
    lengths = {index + i for side in (form, other_form) for index in side.lengths for i in range(2)}
    hidden = {*lengths, *range(ip_at, ip_at + IPV4)}
    for index in range(min(len(side.template) - side.hidden for side in (form, other_form))):
        mask = _constant(form, index) & _constant(other_form, index)
        if index not in hidden and (form.template[index] ^ other_form.template[index]) & mask:
            return index

    return None


def _constant(form: Form, index: int) -> int:
    """Return the mask of a byte's bits that are no copies of fields."""
    mask = 0xFF
    for runs in form.runs.values():
        for run in runs:
            if run.at <= index < run.at + run.size:
                mask &= ~((run.mask << run.low) >> 8 * (run.at + run.size - 1 - index))

    return mask & 0xFF
