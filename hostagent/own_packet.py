"""Packets of the user's own: a file of two Scapy functions, which build a flow's frames.

    def data_packet(flow):
        return Ether(src=flow.source_mac, ...) / Shim(label=flow.label) / IP(...) / ...

The functions run once, in a process of their own (`packet_process`), for frames that show where
each field stands (`forms`); everything after that is done with bytes.
"""

import json
import os
import select
import signal
import struct
import subprocess
import tempfile
import time
from contextlib import suppress

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.shape.addressing import colons, dotted
from hostagent import form_search, forms
from hostagent.forms import BITS, VARYING, Built, Form, Forms
from hostagent.isolation import clean_environment, python_command
from hostagent.packet_answers import BAD, GOOD, unpacked
from hostagent.packets import Ends, Packets, bitmap_bytes, wrap
from hostagent.transports import roce
from hostagent.transports.roce import CE, IPV4, MAX_TOLD_BYTES

WAIT_SECONDS = 60
MOST_CHARACTERS = 500
# The user's functions might write without end.
MOST_ANSWER = 1 << 27
# Known forms, by a file's text and the payload: found here, or by another process (`take`).
KNOWN: dict[tuple[str, int], Forms] = {}
# Ethernet's frame check sequence, which frames here do without.
FCS = 4


class OwnFrames:
    """The packets of one flow of one kind: `form` with its addresses and numbers in it."""

    __slots__ = ("_form", "_frame")

    def __init__(self, form: Form, ends: Ends, flow: int, run: int) -> None:
        self._form = form
        self._frame = bytearray(form.template)
        fixed = {**ends._asdict(), "number": flow, "partition_key": roce.partition_key(run)}
        forms.put(form, self._frame, fixed)

    def frame(
        self,
        label: int,
        psn: int,
        marked: bool = False,
        msn: int = 0,
        sacked: int = 0,
        trimmed: bool = False,
        asks: bool = True,
        less: int = 0,
    ) -> bytes:
        """Return the packet with this label and number; the rest is an ACK's.

        A data packet's payload is `less` bytes shorter than a full packet's.

        There is no NACK, and no packet that does not ask for an ACK: where these are needed,
        packets are ours.
        """
        assert asks and not trimmed
        frame = bytearray(self._frame)
        values = (label, psn & roce.PSN_MASK, msn & roce.PSN_MASK, int(marked))
        forms.put(self._form, frame, dict(zip(VARYING, values, strict=True)))
        forms.change_length(self._form, frame, bitmap_bytes(sacked), less)

        forms.put_checksum(frame, self._form.ip_at)
        if self._form.hidden:
            end = len(frame) - self._form.hidden
            frame[end:] = roce.icrc(frame, self._form.ip_at, end, self._form.bth_at)

        return bytes(frame)


class OwnPackets:
    """Writer and reader of packets of the user's form; as `hostagent.packets.Packets`."""

    def __init__(self, both: Forms) -> None:
        self.forms = both

    def data(self, ends: Ends, flow: int, run: int = 0) -> OwnFrames:
        """Return the writer of a flow's data packets."""
        return OwnFrames(self.forms.data, ends, flow, run)

    def ack(self, ends: Ends, flow: int, run: int = 0) -> OwnFrames:
        """Return the writer of a flow's ACKs."""
        return OwnFrames(self.forms.ack, ends, flow, run)

    def wrap(self, frame: bytes, source_ip: int, destination_ip: int) -> bytes:
        """Return the frame inside IP-in-IP towards a waypoint."""
        return wrap(frame, source_ip, destination_ip, self.forms.data.ip_at)

    def parse(self, frame: bytes) -> roce.Packet | None:
        """Return the packet of a frame, None where it is of neither form."""
        ip_at = self.forms.data.ip_at
        # One level of tunnel is all that hosts make.
        is_wrapped = (
            frame[ip_at : ip_at + 1] == b"\x45" and frame[ip_at + 9 : ip_at + 10] == b"\x04"
        )
        if is_wrapped and not self.forms.data.is_tunnel:
            frame = frame[:ip_at] + frame[ip_at + IPV4 :]

        for is_ack, form in enumerate(self.forms):
            if forms.is_of(form, frame):
                return _read(form, frame, bool(is_ack))

        return None


def _read(form: Form, frame: bytes, is_ack: bool) -> roce.Packet | None:
    """Return the packet of a frame of a form."""
    ip_at = form.ip_at
    run = roce.DEFAULT_PARTITION - forms.read(form, "partition_key", frame)
    end = ip_at + int.from_bytes(frame[ip_at + 2 : ip_at + 4], "big") - form.hidden
    bitmap = frame[len(form.template) - form.hidden : end] if is_ack else b""
    if run >= roce.RUNS or len(bitmap) > MAX_TOLD_BYTES:
        return None

    is_marked = forms.read(form, "marked", frame) if is_ack else frame[ip_at + 1] & CE == CE
    return roce.Packet(
        is_ack,
        forms.read(form, "number", frame),
        forms.read(form, "psn", frame),
        label=forms.read(form, "label", frame),
        marked=bool(is_marked),
        source_ip=forms.read(form, "source_ip", frame),
        destination_ip=forms.read(form, "destination_ip", frame),
        run=run,
        msn=forms.read(form, "msn", frame) if is_ack else 0,
        sacked=int.from_bytes(bitmap, "little"),
    )


def told(scenario: Scenario) -> str | None:
    """Return the text for `take` in a process that may start none; raises ExperimentError."""
    source = scenario.agent_packet
    if source is None:
        return None

    return forms.as_text(own_forms(source.text, source.file, scenario.packets.payload_bytes))


def take(scenario: Scenario, text: str | None) -> None:
    """Keep the forms of a scenario's packets, from the text that `told` has returned elsewhere."""
    if scenario.agent_packet and text is not None:
        key = (scenario.agent_packet.text, scenario.packets.payload_bytes)
        KNOWN[key] = forms.from_text(text)


def scenario_packets(scenario: Scenario) -> Packets | OwnPackets:
    """Return the writer and reader of a scenario's packets; raises ExperimentError.

    Frames of the user's must not be longer than the scenario's packets.
    """
    source = scenario.agent_packet
    sizes = scenario.packets
    if source is None:
        return Packets(sizes.payload_bytes)

    both = own_forms(source.text, source.file, sizes.payload_bytes)
    header_bytes = len(both.data.template) + FCS - sizes.payload_bytes
    if header_bytes > sizes.header_bytes:
        raise ExperimentError(
            f"{source.file}: data_packet puts {header_bytes} bytes of headers around a payload"
            f" (Ethernet's FCS among them), and packets.header_bytes is {sizes.header_bytes}:"
            f" set packets.header_bytes={header_bytes}"
        )

    return OwnPackets(both)


def own_forms(text: str, name: str, payload_bytes: int) -> Forms:
    """Return the forms of a file's packets; errors call the file `name`.

    Raises ExperimentError with the line of the error.
    """
    key = (text, payload_bytes)
    if key not in KNOWN:
        KNOWN[key] = _found(text, name, payload_bytes)

    return KNOWN[key]


def _found(text: str, name: str, payload_bytes: int) -> Forms:
    order = {
        "text": text,
        "name": name,
        "payload_bytes": payload_bytes,
        "asked": [
            (kind, _given(values), bitmap.hex(), less)
            for kind, values, bitmap, less in form_search.requests()
        ],
    }
    answer = _answer(json.dumps(order).encode(), name)
    try:
        return form_search.found([Built(*pair) for pair in unpacked(answer)], name)
    # The user's code may make its process answer anything.
    except (struct.error, IndexError, StopIteration, ValueError) as error:
        if isinstance(error, ExperimentError):
            raise

        raise ExperimentError(f"{name}: its process has answered with what is no frame") from None


def _given(values: dict[str, int]) -> dict[str, int | str]:
    """Return a function's values: addresses as Scapy takes them, numbers."""
    fields: dict[str, int | str] = {**dict.fromkeys(BITS, 0), **values}
    for end in ("source", "destination"):
        fields[f"{end}_mac"] = colons(values.get(f"{end}_mac", 0))
        fields[f"{end}_ip"] = dotted(values.get(f"{end}_ip", 0))

    return fields


def _answer(order: bytes, name: str) -> bytes:
    """Let the user's functions build an order's frames; raises ExperimentError."""
    # A session of its own, so that processes that it has started end with it.
    with tempfile.TemporaryFile() as asked:
        asked.write(order)
        asked.seek(0)
        process = subprocess.Popen(
            python_command("hostagent.agents.packet_process"),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=clean_environment(),
        )

    try:
        answer = _said(process, name)
    except subprocess.TimeoutExpired:
        raise ExperimentError(f"{name}: its functions take longer than a minute") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

        process.wait()
        if process.stdout:
            process.stdout.close()

    if answer[:1] == GOOD:
        return answer[1:]

    message = answer[1 : MOST_CHARACTERS + 1].decode(errors="replace")
    if answer[:1] != BAD or not message.isprintable():
        message = (
            f"{name}: its functions take longer than 5 s"
            if process.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
            else f"{name}: its process ended without an answer"
        )

    raise ExperimentError(message)


def _said(process: subprocess.Popen[bytes], name: str) -> bytes:
    """Return all that a process writes; raises TimeoutExpired, or ExperimentError for too much."""
    end = time.monotonic() + WAIT_SECONDS
    assert process.stdout is not None
    stream = process.stdout.fileno()
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    output = bytearray()

    while waiting.poll(max(end - time.monotonic(), 0) * 1000):
        part = os.read(stream, 1 << 20)
        if not part:
            break

        output += part
        if len(output) > MOST_ANSWER:
            raise ExperimentError(f"{name}: its process writes more than {MOST_ANSWER >> 20} MiB")

    process.wait(max(end - time.monotonic(), 0))
    return bytes(output)
