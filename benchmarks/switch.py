"""Packets per second of the switch: in process, and through veth pairs.

Beside simple_switch_grpc where it is installed.

    python benchmarks/switch.py                     in process: three programs, and ternary tables
    sudo python benchmarks/switch.py --veth         also through veth pairs, in a namespace
    sudo python benchmarks/switch.py --veth --json rows.json --chart switch.svg

One port in, one port out; frames of 60 bytes (64 with their checksum) and of IPv4 packets of 1,500
bytes. Rates are per second of the switch's CPU time, so that a busy machine does not change them
much. Through veths a window of frames is kept under way, so few that no queue on the way of either
switch is full.
"""

import json
import os
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from queue import Queue
from typing import Any

import click
import grpc

import p4src
from ofan_p4.compiler import Program, compile_file
from ofan_p4.softswitch.p4runtime import P4RuntimeService
from ofan_p4.softswitch.switch import Switch

# isort: split
from google.protobuf import text_format
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

HERE = Path(__file__).resolve().parent
OURS = "softswitch"
BMV2 = "simple_switch_grpc"
IN = 1
OUT = 2
CPU = 510
SIZES = {"64 B": 60, "1,500 B": 1514}
DESTINATION = 0x0A010002
WINDOW = 30
TICKS = os.sysconf("SC_CLK_TCK")
IGNORE_OUTGOING = (263, 23, 1)
BUFFER_FORCED = {"receive": 33, "send": 32}
WAIT_S = 20

TO_GROUP = [
    """table_entry { table_id: $routes match {
       field_id: 1 lpm { value: "\\n\\001\\000\\002" prefix_len: 32 } }
       action { action { action_id: $to_group
       params { param_id: 1 value: "\\000" } params { param_id: 2 value: "\\001" }
       params { param_id: 3 value: "\\001" } params { param_id: 4 value: "\\000" }
       params { param_id: 5 value: "\\000" } } } }""",
    """table_entry { table_id: $schedule match { field_id: 1 exact { value: "\\001" } }
       match { field_id: 2 exact { value: "\\000" } }
       action { action { action_id: $take_port params { param_id: 1 value: "\\002" } } } }""",
]
ROUTED = [
    """table_entry { table_id: $routes match {
       field_id: 1 lpm { value: "\\n\\001\\000\\000" prefix_len: 24 } }
       action { action { action_id: $next_hop
       params { param_id: 1 value: "\\002" } params { param_id: 2 value: "\\002" }
       params { param_id: 3 value: "\\003" } } } }""",
]
PROGRAMS = {"ofan": TO_GROUP, "ecmp": TO_GROUP, "router": ROUTED}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; rates are packets per second of the switch's CPU time, and of the clock."""

    where: str
    switch: str
    program: str
    size: str
    packets: int
    cpu_s: float
    wall_s: float
    lost: int = 0

    @property
    def per_cpu_s(self) -> float:
        """Packets per second of CPU."""
        return self.packets / self.cpu_s

    @property
    def per_s(self) -> float:
        """Packets per second."""
        return self.packets / self.wall_s


@lru_cache
def compiled(name: str) -> Program:
    """Return a compiled program: one of ours, or one beside this file."""
    if name in ("ofan", "ecmp"):
        return compile_file(p4src.path(name), defines={"MAX_UPLINKS": "8"})

    return compile_file(HERE / f"{name}.p4")


def entities(name: str) -> list[p4runtime_pb2.Entity]:
    """Return the table entries of a program."""
    info = compiled(name).p4info
    ids = {item.preamble.alias: item.preamble.id for item in (*info.tables, *info.actions)}
    texts = [re.sub(r"\$(\w+)", lambda found: str(ids[found[1]]), text) for text in PROGRAMS[name]]

    return [text_format.Parse(text, p4runtime_pb2.Entity()) for text in texts]


def frame(size: int, label: int = 1) -> bytes:
    """Return a RoCEv2 frame of `size` bytes, without checksum."""
    total = size - 14
    words = [
        0x4500,
        total,
        1,
        0,
        64 << 8 | 17,
        0,
        0x0A00,
        0x0002,
        DESTINATION >> 16,
        DESTINATION & 0xFFFF,
    ]

    words[5] = 0xFFFF - sum(words) % 0xFFFF
    header = struct.pack(">10H", *words)
    udp = struct.pack(">HHHH", label, 4791, total - 20, 0)

    return (
        bytes.fromhex("020000000001020000000002") + b"\x08\x00" + header + udp + bytes(total - 28)
    )


# In process


def in_process(name: str, size: str, packets: int) -> Row:
    """Measure a program without sockets and queues; the best of three runs."""
    switch = programmed(name)
    frames = [frame(SIZES[size], label) for label in range(256)]
    return _best(switch, frames, packets, name=name, size=size)


def programmed(name: str) -> Switch:
    """Return a switch that runs a program with its entries."""
    switch = Switch(
        1, clock=lambda: 0, random=random.Random(1).randint, ports=(IN, OUT), cpu_port=CPU
    )
    service = P4RuntimeService(switch)
    service.open_stream(lambda _message: None).receive(hello())
    service.set_pipeline(pipeline(name))
    service.write(inserts(name))

    return switch


def ternary(entries: int, masks: int, packets: int) -> Row:
    """Measure an access list with so many entries, which have so many different masks."""
    rng = random.Random(1)
    switch = Switch(1, clock=lambda: 0, random=rng.randint, ports=(IN, OUT), cpu_port=CPU)
    switch.load(json.dumps(compiled("acl").json).encode())
    assert switch.pipeline is not None
    table = switch.pipeline.tables[0]
    permit = next(
        number
        for number, action in switch.pipeline.program.actions.items()
        if action.name.endswith("permit")
    )

    bits = [key.bits for key in table.spec.key]
    chosen = [[rng.getrandbits(width) for width in bits] for _ in range(masks)]
    for priority in range(1, entries + 1):
        match = tuple(
            (rng.getrandbits(width) & mask, mask)
            for width, mask in zip(bits, rng.choice(chosen), strict=True)
        )

        table.insert(match, priority, permit, (OUT,))

    return _best(
        switch,
        frames=[rng.randbytes(14) for _ in range(256)],
        packets=packets,
        name=f"acl, {entries:,} entries, {masks:,} masks",
        size="14 B",
    )


def _best(switch: Switch, frames: list[bytes], packets: int, name: str, size: str) -> Row:
    ingress = switch.ingress
    egress = switch.egress
    best = float("inf")

    for _ in range(3):
        started = time.process_time()
        for _ in range(packets // len(frames)):
            for data in frames:
                for pending in ingress(IN, data):
                    egress(pending)

        best = min(best, time.process_time() - started)

    done = packets // len(frames) * len(frames)
    assert switch.counts.transmitted == 3 * done, switch.counts
    return Row(
        "in process", switch=OURS, program=name, size=size, packets=done, cpu_s=best, wall_s=best
    )


# Through veth pairs


def hello() -> p4runtime_pb2.StreamMessageRequest:
    """Return what makes a controller primary."""
    message = p4runtime_pb2.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.election_id.low = 1

    return message


def pipeline(name: str) -> p4runtime_pb2.SetForwardingPipelineConfigRequest:
    """Return the request that sets a program."""
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, action=3)
    request.election_id.low = 1
    request.config.p4info.CopyFrom(compiled(name).p4info)
    request.config.p4_device_config = json.dumps(compiled(name).json).encode()

    return request


def inserts(name: str) -> p4runtime_pb2.WriteRequest:
    """Return the request that inserts a program's entries."""
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.election_id.low = 1
    for entity in entities(name):
        request.updates.add(type=p4runtime_pb2.Update.INSERT, entity=entity)

    return request


def ip(line: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *line.split()], check=True)


@contextmanager
def veths(mtu: int = 9000) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Make two veth pairs, i0 and i1, with the ends s1 and s2 for the switch.

    Yield sockets on the others.
    """
    with ExitStack() as stack:
        sockets = []
        for number, name in enumerate(("i0", "i1"), 1):
            ip(f"link add {name} type veth peer name s{number}")
            stack.callback(ip, f"link del {name}")
            for end in (name, f"s{number}"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                ip(f"link set {end} up mtu {mtu}")

            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sock.setsockopt(*IGNORE_OUTGOING)
            for option in BUFFER_FORCED.values():
                sock.setsockopt(socket.SOL_SOCKET, option, 16 << 20)

            sock.bind((name, 3))
            sock.setblocking(False)
            sockets.append(sock)

        yield sockets[0], sockets[1]


@contextmanager
def running(kind: str, folder: Path) -> Iterator[tuple[int, Any]]:
    """Run a switch on s1 and s2.

    Yield its process id and a P4Runtime stub whose controller is primary.
    """
    address = f"unix:{folder / kind}.grpc"
    own = (
        [sys.executable, "-m", "ofan_p4.softswitch.process"]
        if kind == OURS
        else [BMV2, "--thrift-port", "19090", "-L", "off"]
    )

    options = [
        "--no-p4",
        "--device-id",
        "1",
        "-i",
        "1@s1",
        "-i",
        "2@s2",
        "--",
        "--grpc-server-addr",
        address,
        "--cpu-port",
        str(CPU),
    ]

    quiet = subprocess.DEVNULL
    command = [*own, *options]
    with subprocess.Popen(command, cwd=HERE.parent, stdout=quiet, stderr=quiet) as process:
        requests: Queue[Any] = Queue()
        channel = grpc.insecure_channel(address)
        try:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
            grpc.channel_ready_future(channel).result(WAIT_S)
            requests.put(hello())
            responses = stub.StreamChannel(iter(requests.get, None))
            next(responses)
            yield process.pid, stub
        finally:
            requests.put(None)
            channel.close()
            process.terminate()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def through(
    ends: tuple[socket.socket, socket.socket], frames: list[bytes], seconds: float
) -> tuple[int, int]:
    """Keep a window of frames under way for so long.

    Return how many have come through and how many were lost.
    """
    sender, receiver = ends
    sent = received = 0
    deadline = time.monotonic() + seconds

    while time.monotonic() < deadline:
        for _ in range(min(64, WINDOW - (sent - received))):
            try:
                sender.send(frames[sent % len(frames)])
            except OSError:
                break

            sent += 1

        received += drained(receiver, 0 if sent - received < WINDOW else 0.2)

    while received < sent and (more := drained(receiver, 1)):
        received += more

    return received, sent - received


def drained(receiver: socket.socket, wait_s: float) -> int:
    """Return how many frames have arrived, after waiting for the first."""
    if wait_s and not select.select([receiver], [], [], wait_s)[0]:
        return 0

    count = 0
    try:
        while count < WINDOW:
            receiver.recv(2048)
            count += 1
    except BlockingIOError:
        pass

    return count


def on_wires(kind: str, names: list[str], seconds: float) -> Iterator[Row]:
    """Measure a switch through veth pairs, program after program on the same wires."""
    with (
        tempfile.TemporaryDirectory() as folder,
        veths() as ends,
        running(kind, Path(folder)) as (pid, stub),
    ):
        for name in names:
            stub.SetForwardingPipelineConfig(pipeline(name), timeout=WAIT_S)
            stub.Write(inserts(name), timeout=WAIT_S)
            for size, length in SIZES.items():
                frames = [frame(length, label) for label in range(256)]
                through(ends, frames, 0.5)
                before = cpu_s(pid)
                started = time.monotonic()
                received, lost = through(ends, frames, seconds)
                yield Row(
                    "veth",
                    switch=kind,
                    program=name,
                    size=size,
                    packets=received,
                    cpu_s=cpu_s(pid) - before,
                    wall_s=time.monotonic() - started,
                    lost=lost,
                )


# Output


def draw(rows: list[Row], path: Path) -> None:
    """Draw the rates as bars, a panel for each way of measuring."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = [row for row in rows if not row.program.startswith("acl")]
    places = list(dict.fromkeys(row.where for row in shown))
    figure, axes = plt.subplots(
        1, len(places), figsize=(4.5 * len(places), 3.2), squeeze=False, sharey=True
    )

    for axis, place in zip(axes[0], places, strict=True):
        series = list(dict.fromkeys((row.switch, row.size) for row in shown if row.where == place))
        for offset, (kind, size) in enumerate(series):
            values = {
                row.program: row.per_cpu_s / 1000
                for row in shown
                if (row.where, row.switch, row.size) == (place, kind, size)
            }

            width = 0.8 / len(series)
            axis.bar(
                [i + offset * width for i in range(len(values))],
                values.values(),
                width,
                label=f"{kind}, {size}",
            )

            axis.set_xticks([i + 0.4 - width / 2 for i in range(len(values))], list(values))

        axis.set_title(place)
        axis.legend(fontsize=7)

    # Room for the legend above the bars, for both panels.
    axes[0][0].set_ymargin(0.45)
    axes[0][0].set_ylabel("thousand packets per CPU second")
    figure.tight_layout()
    figure.savefig(path)


def table_of(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table."""
    titles = f"{'per CPU s':>10} {'per s':>10} {'lost':>5}"
    yield f"{'where':<11} {'switch':<19} {'program':<32} {'frames':>8} {'packets':>10} {titles}"
    for row in rows:
        rates = f"{row.per_cpu_s:10,.0f} {row.per_s:10,.0f} {row.lost:5}"
        what = f"{row.where:<11} {row.switch:<19} {row.program:<32} {row.size:>8}"
        yield f"{what} {row.packets:10,} {rates}"


def enter_namespace(module: str = "") -> None:
    """Start again in a network namespace that ends with this process."""
    if os.geteuid() != 0:
        raise click.ClickException(
            "--veth needs root: it makes interfaces, in a network namespace of its own"
        )

    script = ["-m", module, *sys.argv[1:]] if module else sys.argv
    os.execvp("unshare", ["unshare", "--net", sys.executable, *script, "--inside"])


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--veth", is_flag=True, help="Measure through veth pairs too (root).")
@click.option("--inside", is_flag=True, hidden=True)
@click.option(
    "--packets",
    type=click.IntRange(1000),
    default=100_000,
    show_default=True,
    help="Packets of a run in process.",
)
@click.option(
    "--seconds", type=float, default=5.0, show_default=True, help="Length of a run through veths."
)
@click.option(
    "--json",
    "rows_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the rows as JSON.",
)
@click.option("--chart", type=click.Path(path_type=Path, dir_okay=False), help="Draw the rates.")
def main(
    veth: bool,
    inside: bool,
    packets: int,
    seconds: float,
    rows_file: Path | None,
    chart: Path | None,
) -> None:
    """Measure packets per second of the switch."""
    if veth and not inside:
        enter_namespace()

    rows = [in_process(name, size, packets) for name in PROGRAMS for size in SIZES]
    rows += [
        ternary(entries, masks, packets // 10)
        for entries, masks in ((10, 5), (100, 20), (1000, 20), (1000, 1000))
    ]
    if veth:
        ip("link set lo up")
        for kind in [OURS, *([BMV2] if shutil.which(BMV2) else [])]:
            rows += on_wires(kind, list(PROGRAMS), seconds)

    print("\n".join(table_of(rows)))
    if veth and not shutil.which(BMV2):
        print(f"{BMV2} is not on the PATH: not measured")

    if rows_file is not None:
        rates = [{**asdict(row), "per_cpu_s": row.per_cpu_s, "per_s": row.per_s} for row in rows]
        rows_file.write_text(json.dumps({"rows": rates}, indent=2) + "\n")

    if chart is not None:
        draw(rows, chart)


if __name__ == "__main__":
    main()
