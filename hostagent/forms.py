"""The form of a packet: where in a frame its fields stand, found by comparing frames.

Whoever builds frames (`hostagent.packets`, or a function of the user's) is asked for some that
differ in one field. A bit that changes with bit i of the field, and only with it, is a copy of that
bit; lengths are the words that grow with a bitmap. So nothing here knows a header but IPv4's, which
switches read and change. Frames of random values then show whether all has been understood. Imports
no Scapy, which `sim` may not load.
"""

import json
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.errors import ExperimentError
from hostagent.roce import (
    DEFAULT_PARTITION,
    ICRC,
    IPIP_PROTOCOL,
    IPV4,
    MAX_SACK_BITS,
    ROCE_PORT,
    UDP_PROTOCOL,
)

# What a frame may say, and in how many bits: the same at all networks.
BITS: Mapping[str, int] = {
    "destination_mac": 48,
    "source_mac": 48,
    "source_ip": 32,
    "destination_ip": 32,
    "number": 24,
    "partition_key": 16,
    "label": 16,
    "psn": 24,
    "msn": 24,
    "marked": 1,
}
FIELDS = tuple(BITS)
KINDS = ("data", "ack")
DATA, ACK = range(2)
# What a host must find in what arrives; ECN and the length are IPv4's.
NEEDED = (
    ("source_ip", "destination_ip", "number", "partition_key", "label", "psn"),
    ("source_ip", "destination_ip", "number", "partition_key", "label", "psn", "msn", "marked"),
)
# The fields that differ between the packets of a flow.
VARYING = ("label", "psn", "msn", "marked")
BITMAPS = (0, 4, 8, MAX_SACK_BITS // 8)
CHECKS = 6
VERSION_4_NO_OPTIONS = 0x45
# All of IPv4's second word of 32 bits but "do not fragment".
FRAGMENT = (0x3F, 0xFF)
Values = dict[str, int]


class Request(NamedTuple):
    """A frame to be built: of which kind, with which fields, and what follows an ACK's header."""

    kind: int
    values: Values
    bitmap: bytes


class Built(NamedTuple):
    """A frame; `bth_at` is where Scapy's BTH begins, behind which an ICRC ends the frame, or 0."""

    frame: bytes
    bth_at: int


class Run(NamedTuple):
    """Bits of a field that stand together.

    `size` bytes from `at` on, as a number, have `mask` << `low` of the field's bits from `of` on.
    """

    at: int
    size: int
    low: int
    mask: int
    of: int


class Form(NamedTuple):
    """Frames of one kind: the one whose fields are all 0, and what becomes of others.

    `runs` are a field's copies, the first whole one of which hosts read. A frame is of this kind if
    `signature` says so: (byte, mask, value). `lengths` are 16-bit words that grow with a bitmap,
    IPv4's total length the first. The last `hidden` bytes are the ICRC.
    """

    template: bytes
    runs: dict[str, tuple[Run, ...]]
    signature: tuple[tuple[int, int, int], ...]
    lengths: tuple[int, ...]
    ip_at: int
    bth_at: int
    hidden: int

    @property
    def changes_ipv4(self) -> bool:
        """Return whether packets of a flow differ in their IPv4 header."""
        return any(
            run.at < self.ip_at + IPV4 and run.at + run.size > self.ip_at
            for field in VARYING
            for run in self.runs[field]
        )

    @property
    def shortest(self) -> int:
        """Return how long a frame is at least: its fields, and its ICRC."""
        ends = [run.at + run.size for runs in self.runs.values() for run in runs]
        return max(self.ip_at + IPV4, *ends) + self.hidden

    @property
    def is_udp(self) -> bool:
        """Return whether UDP follows IPv4."""
        return self.template[self.ip_at + 9] == UDP_PROTOCOL

    @property
    def is_tunnel(self) -> bool:
        """Return whether the first IPv4 header has another one behind it."""
        return self.template[self.ip_at + 9] == IPIP_PROTOCOL


class Forms(NamedTuple):
    """The forms of data packets and ACKs.

    `headers` are bytes that all frames have in front of payloads and bitmaps; `ends` what of each
    kind is not the same for many packets.
    """

    data: Form
    ack: Form

    @property
    def headers(self) -> int:
        """Return how many bytes all frames have, ICRC and bitmap left out."""
        return min(len(form.template) - form.hidden for form in self)

    def end(self, kind: int) -> int:
        """Return up to where packets of a kind differ from others of their flow, and more."""
        return max(self.headers, self[kind].shortest - self[kind].hidden)


def as_text(forms: Forms) -> str:
    """Return forms as text, for other processes."""
    return json.dumps([{**form._asdict(), "template": form.template.hex()} for form in forms])


def from_text(text: str) -> Forms:
    """Return the forms of a text."""
    return Forms(*(_form_of(values) for values in json.loads(text)))


def _form_of(values: dict[str, Any]) -> Form:
    runs = {field: tuple(Run(*run) for run in found) for field, found in values["runs"].items()}
    return Form(
        **{
            **values,
            "template": bytes.fromhex(values["template"]),
            "runs": runs,
            "signature": tuple(tuple(row) for row in values["signature"]),
            "lengths": tuple(values["lengths"]),
        }
    )


def requests() -> list[Request]:
    """Return what frames `found` compares, in its order."""
    # Bitmaps end with ones, as one that ended with a word of zeros would be shorter.
    asked: list[Request] = []
    for kind in (DATA, ACK):
        asked.append(Request(kind, {}, b""))
        asked += [
            Request(kind, {field: code}, b"") for field in FIELDS for code in _codes(BITS[field])
        ]
        asked += [Request(kind, {}, b"\xff" * size) for size in BITMAPS if size and kind == ACK]
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
        written = write(forms[request.kind], request.values, request.bitmap)
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
        len(each.frame) - len(request.bitmap) != len(base) or each.bth_at != bth_at
        for request, each in zip(asked, built, strict=True)
    ):
        raise ExperimentError(
            f"{who}: frames differ in length or layers: only flow.bitmap may lengthen one"
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

    longer = [
        each.frame
        for each, request in zip(built, asked, strict=True)
        if request.bitmap and not request.values
    ]
    lengths = _lengths(base, longer, ip_at, hidden)
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


def _lengths(base: bytes, longer: Sequence[bytes], ip_at: int, hidden: int) -> tuple[int, ...]:
    """Return where the words begin that grow with a bitmap, IPv4's total length first."""
    known = ip_at + 2
    ignored = {known, known + 1, ip_at + 10, ip_at + 11}
    # The low byte of a length grows by 4 first, and both by 128.
    ends = {
        place
        for frame in longer[:2]
        for place in range(len(base) - hidden)
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
    rows += [(at, _constant(form, at), base[at]) for at in (ip_at - 2, ip_at - 1)]
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


_PORT = ROCE_PORT.to_bytes(2, "big")


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


def write(form: Form, values: Mapping[str, int], bitmap: bytes = b"") -> bytearray:
    """Return a frame with these fields, others 0; its ICRC is left 0."""
    frame = bytearray(form.template)
    put(form, frame, values)
    if bitmap:
        lengthen(form, frame, bitmap)

    put_checksum(form, frame)
    return frame


def put(form: Form, frame: bytearray, values: Mapping[str, int]) -> None:
    """Write fields into a frame in which they are 0."""
    for field, value in values.items():
        for at, size, low, mask, of in form.runs[field]:
            old = int.from_bytes(frame[at : at + size], "big")
            new = old | (value >> of & mask) << low
            frame[at : at + size] = new.to_bytes(size, "big")


def lengthen(form: Form, frame: bytearray, bitmap: bytes) -> None:
    """Put a bitmap in front of a frame's ICRC; what says how long it is follows."""
    end = len(frame) - form.hidden
    frame[end:end] = bitmap
    for at in form.lengths:
        (length,) = struct.unpack_from(">H", frame, at)
        struct.pack_into(">H", frame, at, length + len(bitmap) & 0xFFFF)


def put_checksum(form: Form, frame: bytearray) -> None:
    """Write IPv4's checksum (RFC 791)."""
    at = form.ip_at
    frame[at + 10 : at + 12] = b"\0\0"
    total = sum(struct.unpack_from(">10H", frame, at))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", frame, at + 10, total ^ 0xFFFF)


def read(form: Form, field: str, frame: bytes) -> int:
    """Return a field of a frame of this form."""
    at, size, low, _, _ = whole(form, field)
    return int.from_bytes(frame[at : at + size], "big") >> low & (1 << BITS[field]) - 1


def whole(form: Form, field: str) -> Run:
    """Return where hosts read a field: its first copy in one piece."""
    return next(run for run in form.runs[field] if run.mask == (1 << BITS[field]) - 1)


def is_of(form: Form, frame: bytes) -> bool:
    """Return whether a frame is of this form, and as long as its headers say."""
    at = form.ip_at
    if len(frame) < form.shortest or not all(
        frame[place] & mask == value for place, mask, value in form.signature
    ):
        return False

    total = int.from_bytes(frame[at + 2 : at + 4], "big")
    if form.is_udp and total != IPV4 + int.from_bytes(frame[at + 24 : at + 26], "big"):
        return False

    # A frame may be longer than its packet (Ethernet pads to 60 bytes), never shorter.
    return form.shortest - at <= total <= len(frame) - at


class Beginnings(NamedTuple):
    """The first bytes of many flows' frames, (flows, 2, bytes): data, ACK; and their forms.

    Fields that differ between a flow's packets are 0; the ICRC is left out.
    """

    frames: NDArray[np.uint8]
    forms: Forms


def beginnings(ends: Sequence[NDArray[np.int64]], forms: Forms, size: int) -> Beginnings:
    """Return the first `size` bytes of all flows' frames in run 0.

    `ends` are arrays in the order of `hostagent.packets.Ends`; flows are numbered from 0.
    """
    frames = np.zeros((len(ends[0]), 2, size), dtype=np.uint8)
    back = (1, 0, 3, 2)
    for kind, columns in ((DATA, ends), (ACK, [ends[i] for i in back])):
        form = forms[kind]
        rows = frames[:, kind]
        known = np.frombuffer(form.template[: len(form.template) - form.hidden], dtype=np.uint8)
        rows[:, : min(size, len(known))] = known[:size]
        numbers = np.arange(len(rows))
        keys = np.full(len(rows), DEFAULT_PARTITION)
        fields = ("source_mac", "destination_mac", "source_ip", "destination_ip")
        given = dict(zip(fields, columns, strict=True))
        for field, values in {**given, "number": numbers, "partition_key": keys}.items():
            for run in form.runs[field]:
                _place(rows, run, values)

        _place_checksum(rows[:, form.ip_at : form.ip_at + IPV4])

    return Beginnings(frames, forms)


def _place(rows: NDArray[np.uint8], run: Run, values: NDArray[np.int64]) -> None:
    """Write a field's bits into all rows."""
    words = (values >> run.of & run.mask) << run.low
    for byte in range(run.size):
        rows[:, run.at + byte] |= (words >> 8 * (run.size - 1 - byte) & 0xFF).astype(np.uint8)


def _place_checksum(headers: NDArray[np.uint8]) -> None:
    """Write IPv4 headers' checksum (RFC 791): the complement of their ones' complement sum."""
    headers[:, 10:12] = 0
    words = headers.astype(np.int64).reshape(len(headers), -1, 2)
    total = (words[:, :, 0] << 8 | words[:, :, 1]).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    headers[:, 10] = (total ^ 0xFFFF) >> 8
    headers[:, 11] = (total ^ 0xFFFF) & 0xFF
