"""`ofan-p4 trace`: the walk of packets through a program, table by table, with source lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from ofan_p4.bounded import BoundedFile, TooLargeError, read_bytes
from ofan_p4.compiler import CompileError, compile_file
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.control.switch import MAX_RESUBMISSIONS, Switch
from ofan_p4.softswitch.control.trace import Step, Walk
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.script import (
    CheckCounter,
    CheckFailed,
    Command,
    Expect,
    Packet,
    ScriptError,
    parse_script,
)

PORTS = 511
# Of a packet that goes round for ever.
MOST_SHOWN = 100
BOLD = ("received", "sent", "dropped", "egress")
COLOURS = {
    "table": "cyan",
    "action": "cyan",
    "sent": "green",
    "dropped": "red",
    "parser_error": "red",
    "checksum_wrong": "red",
}

EXAMPLES = """
\b
Examples:
  ofan-p4 trace router.p4 \\
--packet ffffffffffff02000000000108\
00450000140000000040006ee50a0000010a000002
  ofan-p4 trace router.p4 --entries router.stf   the packets of the STF script
  ofan-p4 trace router.p4 --packet 0000 --port 3 --json \\
      | jq '.packets[].steps[].text'

\b
Entries, in files of either kind; --entries may be repeated:
  STF            add routes ipv4.dst:0x0a000000/8 forward(port:3)
                 setdefault routes drop()   mirroring_add 7 2
                 register_write seen 0 5
  P4Runtime      a WriteRequest or a ReadResponse in protobuf's text format:
                 updates { type: INSERT entity { table_entry { ... } } }
"""


class TraceError(Exception):
    """Something that the user gave cannot be used; the message is one line."""


@dataclass(slots=True)
class Traced:
    """One packet: its port and frame, its steps, and the frames that left."""

    port: int
    frame: bytes
    steps: list[Step] = field(default_factory=list)
    sent: list[tuple[int, bytes]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the packet as an object for JSON."""
        sent = [{"port": port, "frame": frame.hex()} for port, frame in self.sent]
        return {
            "port": self.port,
            "frame": self.frame.hex(),
            "steps": [step.as_json() for step in self.steps],
            "sent": sent,
        }


class Tracer:
    """A program on the bench, with the traces of its packets."""

    def __init__(self, program: dict[str, Any], p4info: p4info_pb2.P4Info | None) -> None:
        self.packets: list[Traced] = []
        self._steps: list[Step] = []
        self.bench = Bench(program, Walk(self._steps.append))
        self._service: P4RuntimeService | None = None
        self._p4info = p4info
        # For the pipeline that a controller would set, if there are P4Runtime entries.
        self._source = json.dumps(program).encode()

    def run(self, files: Sequence[Path], port: int, frames: Sequence[bytes]) -> None:
        """Apply files of entries; trace the frames, or where there are none the files' packets."""
        if any(is_protobuf(_text(file)) for file in files):
            self.set_pipeline()

        for file in files:
            self.apply(file, with_packets=not frames)

        for frame in frames:
            self.packet(port, frame)

    def apply(self, file: Path, with_packets: bool) -> None:
        """Run the commands of an entries file; trace its packets only if asked for."""
        text = _text(file)
        if is_protobuf(text):
            self._write(file, text)
            return

        try:
            for command in parse_script(text).commands:
                self._run(command, with_packets)
        except ScriptError as error:
            raise TraceError(f"{file}: {error}") from None
        except CheckFailed as error:
            raise CheckFailed(f"{file}: {error}") from None

    def set_pipeline(self) -> None:
        """Give the program to the switch as a controller would, which P4Runtime entries need."""
        if self._p4info is None:
            raise TraceError(
                "P4Runtime entries need P4Info: give the .p4 program, or --p4info for a .json one"
            )

        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        )
        request.config.p4info.CopyFrom(self._p4info)
        request.config.p4_device_config = self._source
        request.election_id.low = 1
        self._service = _primary(self.bench.switch)
        self._service.set_pipeline(request)
        assert self.bench.switch.pipeline is not None
        # The switch has loaded the program anew; the bench must look at the new pipeline.
        self.bench.pipeline = self.bench.switch.pipeline

    def packet(self, port: int, frame: bytes) -> None:
        """Trace one packet; CheckFailed where it goes round for ever, with its first steps kept."""
        before = {number: len(frames) for number, frames in self.bench.sent.items()}
        counts = self.bench.switch.counts
        given_up = counts.dropped_resubmit_loop
        self._steps.clear()
        try:
            self.bench.receive(port, frame)
            if counts.dropped_resubmit_loop > given_up:
                self._end(f"dropped: resubmitted more than {MAX_RESUBMISSIONS} times")
        except CheckFailed:
            hidden = len(self._steps) - MOST_SHOWN
            del self._steps[MOST_SHOWN:]
            self._end(f"goes round for ever: {max(hidden, 0)} more steps are not shown")
            raise
        finally:
            traced = Traced(port, frame, list(self._steps))
            for number, frames in self.bench.sent.items():
                traced.sent += [(number, sent) for sent in frames[before.get(number, 0) :]]

            self.packets.append(traced)

    def _end(self, text: str) -> None:
        number = self._steps[-1].packet if self._steps else 0
        self._steps.append(Step(number, kind="dropped", where="", text=text))

    def _run(self, command: Command, with_packets: bool) -> None:
        match command:
            case Packet():
                if with_packets:
                    self.packet(command.port, command.frame)
            # A trace shows steps; it does not judge.
            case Expect() | CheckCounter():
                pass
            case _:
                self.bench.run(command)

    def _write(self, file: Path, text: str) -> None:
        try:
            request = write_request(text)
        except text_format.ParseError as error:
            raise TraceError(f"{file}:{error}") from None

        # The file may come from another switch and another controller.
        request.device_id = 0
        request.election_id.low = 1
        request.election_id.high = 0
        request.role = ""
        assert self._service is not None

        try:
            self._service.write(request)
        except StatusError as error:
            raise TraceError(f"{file}: {error}") from None


def _primary(switch: Switch) -> P4RuntimeService:
    """Return a P4Runtime service with a primary controller of election id 1."""
    service = P4RuntimeService(switch)
    hello = p4runtime_pb2.StreamMessageRequest()
    hello.arbitration.election_id.low = 1
    service.open_stream(lambda _message: None).receive(hello)

    return service


def is_protobuf(text: str) -> bool:
    """Say whether an entries file is P4Runtime text: then its first word opens a message."""
    for line in text.splitlines():
        tokens = line.partition("#")[0].replace("{", " { ").replace(":", " : ").split()
        if tokens:
            return len(tokens) == 1 or tokens[1] in ("{", ":")

    return False


def write_request(text: str) -> p4runtime_pb2.WriteRequest:
    """Return the request of a text-format message.

    The entities of a ReadResponse are inserted, cells are modified.
    """
    try:
        return text_format.Parse(text, p4runtime_pb2.WriteRequest())
    except text_format.ParseError as error:
        try:
            response = text_format.Parse(text, p4runtime_pb2.ReadResponse())
        except text_format.ParseError:
            # The first complaint: a WriteRequest is the usual content.
            raise error from None

    request = p4runtime_pb2.WriteRequest()
    for entity in response.entities:
        request.updates.add(type=_kind(entity), entity=entity)

    return request


def _kind(entity: p4runtime_pb2.Entity) -> int:
    """Return the type of update that makes an entity of a ReadResponse."""
    kind = entity.WhichOneof("entity") or ""
    is_cell = kind in (
        "counter_entry",
        "meter_entry",
        "register_entry",
        "value_set_entry",
    ) or kind.startswith("direct_")

    is_default = kind == "table_entry" and entity.table_entry.is_default_action
    return int(
        p4runtime_pb2.Update.MODIFY if is_cell or is_default else p4runtime_pb2.Update.INSERT
    )


def captured(file: Path) -> list[bytes]:
    """Return the frames of a capture."""
    try:
        from scapy.error import Scapy_Exception
        from scapy.utils import RawPcapReader
    except ImportError:
        raise TraceError("captures are read by Scapy: pip install 'ofan-p4[pcap]'") from None

    try:
        with file.open("rb") as opened, RawPcapReader(BoundedFile(opened)) as reader:
            return [bytes(frame) for frame, _ in reader]
    except OSError as error:
        raise TraceError(f"cannot read {file}: {error.strerror}") from None
    except (Scapy_Exception, ValueError, EOFError) as error:
        raise TraceError(f"{file} is not a capture: {error}") from None


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode()
    except OSError as error:
        raise TraceError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TraceError(f"{file} is not text") from None
    except TooLargeError as error:
        raise TraceError(f"{file}: {error}") from None


def load(
    program: Path, p4info: Path | None, include_dirs: Sequence[str], defines: Iterable[str]
) -> Tracer:
    """Return a tracer for a .p4 program, or for BMv2 JSON.

    Raises TraceError, CompileError or PipelineError.
    """
    if program.suffix != ".json":
        macros = {item.partition("=")[0]: item.partition("=")[2] or "1" for item in defines}
        compiled = compile_file(program, include_dirs, macros)
        return Tracer(compiled.json, compiled.p4info)

    info = None
    if p4info is not None:
        try:
            info = text_format.Parse(_text(p4info), p4info_pb2.P4Info())
        except text_format.ParseError as error:
            raise TraceError(f"{p4info}:{error}") from None

    try:
        return Tracer(json.loads(_text(program)), info)
    except ValueError as error:
        raise TraceError(f"{program}: not a BMv2 JSON: {error}") from None


def rendered(traced: Traced, number: int, folder: Path) -> list[str]:
    """Return the lines that show a packet's walk, with places seen from the program's folder."""
    # Compiled from a path that is absolute or relative: both are cut off.
    prefixes = (f"{folder}/", f"{os.path.relpath(folder)}/")
    places = [
        step.where.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for step in traced.steps
    ]
    width = max(map(len, places), default=0)
    lines = [click.style(f"packet {number}", bold=True)]

    for step, where in zip(traced.steps, places, strict=True):
        text = click.style(step.text, fg=COLOURS.get(step.kind), bold=step.kind in BOLD)
        lines.append(f"  {click.style(where.ljust(width), dim=True)}  {text}")

    return lines


def _frame(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[bytes, ...]:
    try:
        return tuple(bytes.fromhex(text.removeprefix("0x").replace(":", "")) for text in texts)
    except ValueError:
        raise click.BadParameter("expected hexadecimal digits, two for each byte") from None


@click.command("trace", epilog=EXAMPLES)
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--packet",
    "frames",
    multiple=True,
    metavar="HEX",
    callback=_frame,
    help="A frame that comes in; repeatable.",
)
@click.option(
    "--pcap",
    "captures",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The frames of a capture.",
)
@click.option(
    "--port",
    type=click.IntRange(0, PORTS - 1),
    default=0,
    show_default=True,
    help="Where the frames come in.",
)
@click.option(
    "--entries",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table entries; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the steps as JSON.")
@click.option(
    "--p4info",
    type=click.Path(dir_okay=False, path_type=Path),
    help="P4Info (text) of a .json program.",
)
@click.option(
    "-I", "include_dirs", multiple=True, metavar="DIR", help="Search DIR for included files."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
def trace(
    program: Path,
    frames: tuple[bytes, ...],
    captures: tuple[Path, ...],
    port: int,
    files: tuple[Path, ...],
    as_json: bool,
    p4info: Path | None,
    include_dirs: tuple[str, ...],
    defines: tuple[str, ...],
) -> None:
    """Show how packets walk through PROGRAM (.p4, or BMv2 .json): parser, tables, actions, what
    leaves.

    random() draws the lowest value, and time stands still but for `wait` in an STF script, so that
    a walk repeats exactly.
    """
    try:
        tracer = load(program, p4info, include_dirs, defines)
        frames = (*frames, *(frame for capture in captures for frame in captured(capture)))
        tracer.run(files, port, frames)
    except CheckFailed as error:
        # The first steps show how the loop began.
        if tracer.packets:
            _show(program, tracer.packets, as_json)

        raise click.ClickException(str(error)) from None
    except CompileError as error:
        click.echo(str(error), err=True)
        raise SystemExit(2) from None
    except (TraceError, PipelineError, StatusError) as error:
        raise click.ClickException(str(error)) from None

    if not tracer.packets:
        raise click.UsageError(
            "no packet: give --packet or --pcap, or an STF file that sends some with --entries"
        )

    _show(program, tracer.packets, as_json)


def _show(program: Path, packets: Sequence[Traced], as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                {"program": str(program), "packets": [packet.as_json() for packet in packets]},
                indent=2,
            )
        )

        return

    for number, packet in enumerate(packets, 1):
        click.echo("\n".join(rendered(packet, number, program.parent)))
