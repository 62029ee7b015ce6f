"""`ofan pcap FILE`: a capture's packets, one line each, with Ofan's names.

Scapy summarises all other packets.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
from scapy.error import Scapy_Exception
from scapy.layers import inet, l2  # noqa: F401  # Scapy learns its protocols by importing them
from scapy.utils import PcapReader

from fattree.shape.addressing import dotted, host_name, host_of_ip
from fattree.shape.topology import FatTree
from hostagent.segment_routes import is_marked, unwrapped
from hostagent.transports.roce import ETHERNET, IPIP_PROTOCOL, Packet, is_intact, parse
from ofan_p4.bounded import BoundedFile, TooLargeError
from ofan_p4.softswitch.ports.pause_frames import read_pause

# Host names have pod, edge and index for every k, so the largest fat-tree names all hosts.
ANY_TREE = FatTree(128)
# Where an IPv4 header has its protocol and its destination (RFC 791).
SERVICE_AT = ETHERNET + 1
IP_PROTOCOL = ETHERNET + 9
IP_DESTINATION = ETHERNET + 16
EXAMPLES = """
\b
Examples:
  ofan emulate demo --policies ofan --pcap edge0_0:3 --output results/run
  ofan pcap results/run/ofan-1-edge0_0-3.pcapng --limit 20
  ofan pcap results/run/ofan-1-edge0_0-3.pcapng --json | jq .psn
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One packet of a capture.

    `what` is DATA, ACK, PAUSE or OTHER, `waypoint` the end of a tunnel; times are in seconds.
    """

    time: float
    what: str
    source: str
    destination: str
    size: int
    flow: int | None = None
    psn: int | None = None
    label: int | None = None
    marked: bool = False
    received: int | None = None
    sacked: str = ""
    waypoint: str = ""
    intact: bool = True
    summary: str = ""


def decode(time: float, frame: bytes, summary: str = "") -> Line:
    """Return a frame's fields; `summary` describes a frame that is not Ofan's."""
    told = read_pause(frame)
    if told is not None:
        pauses = ", ".join(
            f"priority {priority} for {quanta} quanta" for priority, quanta in told.items()
        )
        return Line(time, "PAUSE", source="", destination="", size=len(frame), summary=pauses)

    # Some frames are not Ofan's packets: probes, and frames of the kernel.
    size = len(frame)
    is_outer_marked = size > SERVICE_AT and is_marked(frame, SERVICE_AT)
    frame, way = unwrapped(frame)
    packet = parse(frame)
    if packet is None:
        return Line(time, what="OTHER", source="", destination="", size=size, summary=summary)

    if _is_wrapped(frame):
        way = dotted(int.from_bytes(frame[IP_DESTINATION : IP_DESTINATION + 4], "big"))

    return Line(
        time=time,
        what="ACK" if packet.is_ack else "DATA",
        source=_owner(packet.source_ip),
        destination=_owner(packet.destination_ip),
        size=size,
        flow=packet.flow,
        psn=packet.psn,
        label=packet.label,
        marked=packet.marked or (not packet.is_ack and is_outer_marked),
        received=packet.msn if packet.is_ack else None,
        sacked=_ranges(packet),
        waypoint=way,
        intact=is_intact(frame),
    )


def _is_wrapped(frame: bytes) -> bool:
    return frame[IP_PROTOCOL] == IPIP_PROTOCOL


def _owner(ip: int) -> str:
    host = host_of_ip(ANY_TREE, ip)
    return dotted(ip) if host is None else host_name(ANY_TREE, host)


def _ranges(packet: Packet) -> str:
    """Return the packet numbers that a bitmap acknowledges above the lowest missing, as ranges."""
    numbers = [
        packet.msn + bit for bit in range(packet.sacked.bit_length()) if packet.sacked >> bit & 1
    ]
    # A range begins after a missing number, and ends before a missing number.
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]

    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in zip(starts, ends, strict=True))


def text(line: Line) -> str:
    """Return a line for people."""
    if line.what in ("OTHER", "PAUSE"):
        return f"{line.time:15.9f}  {line.what}  {line.summary}  {line.size} B"

    notes = [f"received {line.received}"] if line.received is not None else []
    notes += [f"sacked {line.sacked}"] if line.sacked else []
    notes += ["marked"] if line.marked else []
    notes += [f"via {line.waypoint}"] if line.waypoint else []
    notes += [] if line.intact else ["ICRC WRONG"]
    head = f"{line.time:15.9f}  {line.what:5}  {line.source} > {line.destination}"

    numbers = f"flow {line.flow}  psn {line.psn}  label {line.label}  {line.size} B"
    return f"{head}  {numbers}  {'  '.join(notes)}".rstrip()


def frames(path: Path) -> Iterator[tuple[float, bytes, Any]]:
    """Yield (seconds since the first packet, frame, Scapy's view) of a pcap or pcapng file.

    Raises ClickException.
    """
    try:
        with path.open("rb") as file:
            first = None
            # Captures have the time of day; only differences matter.
            for packet in PcapReader(BoundedFile(file)):
                first = packet.time if first is None else first
                yield float(packet.time - first), packet.original, packet
    except (Scapy_Exception, OSError, EOFError, TooLargeError) as error:
        raise click.ClickException(f"{path}: cannot be read as a capture ({error})") from error


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many packets.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per packet.")
def pcap(file: Path, limit: int | None, as_json: bool) -> None:
    """Print the packets of a capture, decoded."""
    for time, frame, packet in islice(frames(file), limit):
        line = decode(time, frame, packet.summary())
        click.echo(json.dumps(asdict(line)) if as_json else text(line))
