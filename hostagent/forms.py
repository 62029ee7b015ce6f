"""The form of a packet: the positions of its fields in a frame (`form_search` finds them).

So no function here knows a header but IPv4's, which switches read and change. Imports no Scapy,
which `sim` may not load.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hostagent.transports.roce import (
    DEFAULT_PARTITION,
    IPIP_PROTOCOL,
    IPV4,
    MAX_SACK_BITS,
    UDP_PROTOCOL,
)

# The fields of a frame, and their bits: the same in all networks.
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
# Fields that a host must find in an arriving frame; ECN and the length are IPv4's.
NEEDED = (
    ("source_ip", "destination_ip", "number", "partition_key", "label", "psn"),
    ("source_ip", "destination_ip", "number", "partition_key", "label", "psn", "msn", "marked"),
)
# The fields that differ between the packets of a flow.
VARYING = ("label", "psn", "msn", "marked")
BITMAPS = (0, 4, 8, MAX_SACK_BITS // 8)
Values = dict[str, int]


class Request(NamedTuple):
    """A frame to be built: its kind, its fields, and the bitmap behind an ACK's header.

    A data packet's payload is `less` bytes shorter than a full packet's.
    """

    kind: int
    values: Values
    bitmap: bytes = b""
    less: int = 0


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
    """Frames of one kind: a template with all fields 0, and the positions of fields and lengths.

    `runs` are a field's copies; hosts read the first whole copy. A frame is of this kind if it fits
    `signature`: (byte, mask, value). `lengths` are 16-bit words that grow with a bitmap, or shrink
    with a payload, IPv4's total length the first. The last `hidden` bytes are the ICRC.
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
        """Return the least length of a frame: its fields, and its ICRC."""
        ends = [run.at + run.size for runs in self.runs.values() for run in runs]
        return max(self.ip_at + IPV4, *ends) + self.hidden

    @property
    def is_udp(self) -> bool:
        """Return whether UDP follows IPv4."""
        return self.template[self.ip_at + 9] == UDP_PROTOCOL

    @property
    def is_tunnel(self) -> bool:
        """Return whether a second IPv4 header follows the first."""
        return self.template[self.ip_at + 9] == IPIP_PROTOCOL


class Forms(NamedTuple):
    """The forms of data packets and ACKs.

    `headers` are bytes that all frames have in front of payloads and bitmaps; packets of a kind
    differ from others of their flow before `end` alone.
    """

    data: Form
    ack: Form

    @property
    def headers(self) -> int:
        """Return how many bytes all frames have, ICRC and bitmap left out."""
        return min(len(form.template) - form.hidden for form in self)

    @property
    def payload(self) -> int:
        """Return how many bytes of full data packets trimming leaves out.

        An ICRC's length of the payload stays behind the headers, in the ICRC's place.
        """
        return len(self.data.template) - self.data.hidden - self.end(DATA)

    def trimmed(self, less: int) -> int:
        """Return the same of a data packet with a payload of `less` bytes less.

        At least 1: a host knows a cut packet by its length.
        """
        return max(1, self.payload - less)

    def end(self, kind: int) -> int:
        """Return an offset behind all bytes in which a flow's packets of a kind differ."""
        return max(self.headers, self[kind].shortest - self[kind].hidden)


def as_text(forms: Forms) -> str:
    """Return forms as text, for other processes."""
    return json.dumps([{**form._asdict(), "template": form.template.hex()} for form in forms])


def from_text(text: str) -> Forms:
    """Return the forms of a text."""
    return Forms(*(_form_of(values) for values in json.loads(text)))


def _form_of(values: dict[str, Any]) -> Form:
    runs = {field: tuple(Run(*run) for run in rows) for field, rows in values["runs"].items()}
    return Form(
        **{
            **values,
            "template": bytes.fromhex(values["template"]),
            "runs": runs,
            "signature": tuple(tuple(row) for row in values["signature"]),
            "lengths": tuple(values["lengths"]),
        }
    )


def write(form: Form, values: Mapping[str, int], bitmap: bytes = b"", less: int = 0) -> bytearray:
    """Return a frame with these fields, others 0; its ICRC is left 0."""
    frame = bytearray(form.template)
    put(form, frame, values)
    change_length(form, frame, bitmap, less)

    put_checksum(frame, form.ip_at)
    return frame


def put(form: Form, frame: bytearray, values: Mapping[str, int]) -> None:
    """Write fields into a frame in which they are 0."""
    for field, value in values.items():
        for start, size, low, mask, of in form.runs[field]:
            old = int.from_bytes(frame[start : start + size], "big")
            new = old | (value >> of & mask) << low
            frame[start : start + size] = new.to_bytes(size, "big")


def change_length(form: Form, frame: bytearray, bitmap: bytes, less: int) -> None:
    """Put a bitmap in front of a frame's ICRC, or take `less` bytes away there.

    The frame's lengths follow.
    """
    end = len(frame) - form.hidden
    frame[end - less : end] = bitmap
    for length_at in form.lengths:
        (length,) = struct.unpack_from(">H", frame, length_at)
        struct.pack_into(">H", frame, length_at, length + len(bitmap) - less & 0xFFFF)


def put_checksum(frame: bytearray, ip_at: int) -> None:
    """Write the checksum of the IPv4 header that begins at byte `ip_at` (RFC 791)."""
    frame[ip_at + 10 : ip_at + 12] = b"\0\0"
    total = sum(struct.unpack_from(">10H", frame, ip_at))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", frame, ip_at + 10, total ^ 0xFFFF)


def read(form: Form, field: str, frame: bytes) -> int:
    """Return a field of a frame of this form."""
    start, size, low, _, _ = whole(form, field)
    return int.from_bytes(frame[start : start + size], "big") >> low & (1 << BITS[field]) - 1


def whole(form: Form, field: str) -> Run:
    """Return the run that hosts read: the field's first copy in one piece."""
    return next(run for run in form.runs[field] if run.mask == (1 << BITS[field]) - 1)


def is_of(form: Form, frame: bytes) -> bool:
    """Return whether a frame is of this form, and its lengths fit."""
    ip_at = form.ip_at
    if len(frame) < form.shortest or not all(
        frame[index] & mask == value for index, mask, value in form.signature
    ):
        return False

    total = int.from_bytes(frame[ip_at + 2 : ip_at + 4], "big")
    if form.is_udp and total != IPV4 + int.from_bytes(frame[ip_at + 24 : ip_at + 26], "big"):
        return False

    # A frame may be longer than its packet (Ethernet pads to 60 bytes), never shorter.
    return form.shortest - ip_at <= total <= len(frame) - ip_at


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
        template = np.frombuffer(form.template[: len(form.template) - form.hidden], dtype=np.uint8)
        rows[:, : min(size, len(template))] = template[:size]
        numbers = np.arange(len(rows))
        keys = np.full(len(rows), DEFAULT_PARTITION)
        fields = ("source_mac", "destination_mac", "source_ip", "destination_ip")
        addresses = dict(zip(fields, columns, strict=True))
        for field, values in {**addresses, "number": numbers, "partition_key": keys}.items():
            for run in form.runs[field]:
                _place(rows, run, values)

        _place_checksum(rows[:, form.ip_at : form.ip_at + IPV4])

    return Beginnings(frames, forms)


def _place(rows: NDArray[np.uint8], run: Run, values: NDArray[np.int64]) -> None:
    """Write a field's bits into all rows."""
    shifted = (values >> run.of & run.mask) << run.low
    for byte in range(run.size):
        rows[:, run.at + byte] |= (shifted >> 8 * (run.size - 1 - byte) & 0xFF).astype(np.uint8)


def _place_checksum(headers: NDArray[np.uint8]) -> None:
    """Write IPv4 headers' checksum (RFC 791): the complement of their ones' complement sum."""
    headers[:, 10:12] = 0
    pairs = headers.astype(np.int64).reshape(len(headers), -1, 2)
    total = (pairs[:, :, 0] << 8 | pairs[:, :, 1]).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    headers[:, 10] = (total ^ 0xFFFF) >> 8
    headers[:, 11] = (total ^ 0xFFFF) & 0xFF
