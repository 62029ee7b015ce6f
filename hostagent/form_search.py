"""The form of a packet, found by comparing frames.

Whoever builds frames (`hostagent.packets`, or a function of the user's) is asked for some that
differ in one field. A bit that changes with bit i of the field, and only with it, is a copy of that
bit; lengths are the words that grow with a bitmap, or shrink with a payload. Frames of random
values then show whether all has been understood.
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
# All of IPv4's second word of 32 bits but "do not fragment".
FRAGMENT = (0x3F, 0xFF)
_PORT = ROCE_PORT.to_bytes(2, "big")


def requests() -> list[Request]:
    """Return what frames `found` compares, in its order."""
    # Bitmaps end with ones, as one that ended with a word of zeros would be shorter.
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
    """Return values that tell a copied bit's number, counted from 1: its bit j is in code j."""
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

    `name` is what errors call who has built them. Raises ExperimentError.
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
        len(each.frame) - len(request.bitmap) + request.less != len(base) or each.bth_at != bth_at
        for request, each in zip(asked, built, strict=True)
    ):
        raise ExperimentError(
            f"{who}: frames differ in length or layers: a frame must be as long as its"
            f" flow.{'payload' if asked[0].kind == DATA else 'bitmap'} and what all have"
        )

    plain = [each for each, request in zip(built, asked, strict=True) if len(request.values) == 1]
    copies = _copies(base, [each.frame for each in plain], hidden)
    ip_at = _ipv4_at(base, copies, who)
    runs = {field: _runs(numbers, ip_at) for field, numbers in copies.items()}
    for field in NEEDED[DATA if asked[0].kind == DATA else ACK]:
        if not any(run.mask == (1 << BITS[field]) - 1 for run in runs[field]):
            raise ExperimentError(
                f"{who}: flow.{field} ({BITS[field]} bits) must stand in the frame, in one piece:"
                " hosts read it from what arrives"
            )

    others = [
        each.frame
        for each, request in zip(built, asked, strict=True)
        if (request.bitmap or request.less) and not request.values
    ]
    lengths = _lengths(base, others, ip_at, hidden)
    return Form(base, runs, (), lengths, ip_at, bth_at, hidden)


def _copies(base: bytes, frames: Sequence[bytes], hidden: int) -> dict[str, NDArray[np.int64]]:
    """Return for each field and each bit of a frame which bit of the field it copies, -1: none."""
    end = len(base) - hidden
    bits = np.unpackbits(np.frombuffer(base[:end], dtype=np.uint8))
    numbers: dict[str, NDArray[np.int64]] = {}
    rest = iter(frames)
    for field, width in BITS.items():
        number = np.full(len(bits), -1, dtype=np.int64)
        for j in range(width.bit_length()):
            other = np.unpackbits(np.frombuffer(next(rest)[:end], dtype=np.uint8))
            number += (other ^ bits).astype(np.int64) << j

        # What is not a bit's number is no copy: it shows in the frames of random values.
        numbers[field] = np.where(number < width, number, -1)

    return numbers


def _ipv4_at(base: bytes, copies: Mapping[str, NDArray[np.int64]], who: str) -> int:
    """Return where the first IPv4 header begins, by its addresses."""
    descending = list(range(31, -1, -1))
    for at in range(len(base) - IPV4 + 1):
        source, destination = (
            copies[field][8 * (at + where) : 8 * (at + where) + 32].tolist()
            for field, where in (("source_ip", 12), ("destination_ip", 16))
        )
        if base[at] == VERSION_4_NO_OPTIONS and source == destination == descending:
            return at

    raise ExperimentError(
        f"{who}: there is no IPv4 header without options and with flow.source_ip and"
        " flow.destination_ip in it, by which switches forward"
    )


def _runs(number: NDArray[np.int64], ip_at: int) -> tuple[Run, ...]:
    """Return the runs of a field, given which of its bits each bit of a frame copies."""
    found_runs: list[Run] = []
    checksum = range(8 * (ip_at + 10), 8 * (ip_at + 12))
    there = [place for place in np.flatnonzero(number >= 0).tolist() if place not in checksum]
    first = 0
    for i in range(len(there)):
        is_last = i + 1 == len(there)
        if is_last or there[i + 1] != there[i] + 1 or number[there[i + 1]] != number[there[i]] - 1:
            begin, end = there[first], there[i] + 1
            at, last = begin // 8, -(-end // 8)
            mask = (1 << end - begin) - 1
            found_runs.append(Run(at, last - at, 8 * last - end, mask, int(number[end - 1])))
            first = i + 1

    return tuple(found_runs)


def _lengths(base: bytes, others: Sequence[bytes], ip_at: int, hidden: int) -> tuple[int, ...]:
    """Return where the words begin that tell how long frames are, IPv4's total length first."""
    known = ip_at + 2
    ignored = {known, known + 1, ip_at + 10, ip_at + 11}
    # The low byte of a length changes by a little first, and both by 128.
    ends = {
        place
        for frame in others[:2]
        for place in range(min(len(base), len(frame)) - hidden)
        if frame[place] != base[place] and place not in ignored
    }
    return (known, *(place - 1 for place in sorted(ends) if place + 1 not in ends))


def _signed(form: Form, other: Form, name: str) -> Form:
    """Return a form with its signature: what of IPv4 is fixed, and what the other has not."""
    ip_at = form.ip_at
    base = form.template
    rows = [(ip_at, 0xFF, base[ip_at])]
    rows += [(ip_at + 6 + i, mask, base[ip_at + 6 + i] & mask) for i, mask in enumerate(FRAGMENT)]
    rows.append((ip_at + 9, 0xFF, base[ip_at + 9]))

    # What says that IPv4 follows, and RoCEv2's port.
    lengths = {at + i for at in form.lengths for i in range(2)}
    before = [at for at in (ip_at - 2, ip_at - 1) if at not in lengths]
    rows += [(at, _constant(form, at), base[at]) for at in before]
    if form.is_udp and base[ip_at + 22 : ip_at + 24] == _PORT:
        rows += [(ip_at + 22 + i, 0xFF, _PORT[i]) for i in range(2)]

    differing = _differing(form, other)
    if differing is None:
        raise ExperimentError(
            f"{name}: nothing tells an ACK from data: one byte outside of IPv4 that is no length"
            " must differ, as an opcode does"
        )

    mask = _constant(form, differing) & _constant(other, differing)
    rows.append((differing, mask, base[differing] & mask))
    return form._replace(signature=tuple((at, mask, value & mask) for at, mask, value in rows))


def _differing(form: Form, other: Form) -> int | None:
    """Return the first byte in which frames of two forms always differ."""
    ip_at = form.ip_at
    lengths = {at + i for each in (form, other) for at in each.lengths for i in range(2)}
    hidden = {*lengths, *range(ip_at, ip_at + IPV4)}
    for at in range(min(len(each.template) - each.hidden for each in (form, other))):
        mask = _constant(form, at) & _constant(other, at)
        if at not in hidden and (form.template[at] ^ other.template[at]) & mask:
            return at

    return None


def _constant(form: Form, at: int) -> int:
    """Return which bits of a byte no field has a copy in."""
    mask = 0xFF
    for runs in form.runs.values():
        for run in runs:
            if run.at <= at < run.at + run.size:
                mask &= ~((run.mask << run.low) >> 8 * (run.at + run.size - 1 - at))

    return mask & 0xFF
