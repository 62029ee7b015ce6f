"""Throw damaged files and messages at all else that reads: each is taken, or refused in a line.

python benchmarks/fuzz_inputs.py --count 1000000 --seed 1

The switch and the compiler have their own: benchmarks/fuzz_switch.py, tests/emulation/compiler.
"""

import random
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from emulation.commands.pcap import decode, frames
from emulation.held.messages import GetSchedule, MessageError, SetLink, StartTraffic, read_request
from fattree.demand.matrix_flows import matrix_flows
from fattree.demand.workloads.file import read_workload
from fattree.errors import FabricError
from fattree.files.connection_matrix import parse_connection_matrix
from fattree.files.parquet import ParquetError
from fattree.files.parquet_footer import unpacked_bytes
from fattree.files.topo_file import fabric_of
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_file import read_chakra
from fattree.generators.goal import goal_graph
from fattree.generators.goal_file import read_goal
from fattree.generators.model import read_model
from fattree.shape.addressing import link_named
from fattree.shape.topology import FatTree
from fattree.texts.experiment_file import parse_experiment
from hostagent.packets import AckFrames, DataFrames, Ends
from hostagent.transports import roce
from ofan_p4.stf.script import ScriptError, parse_script

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / "tests" / "fattree" / "workloads"
TREE = FatTree(4)
ENDS = Ends(1, 2, 0x0A000002, 0x0A000102)
REQUESTS = {kind.command: kind for kind in (SetLink, StartTraffic, GetSchedule)}
PIECES = (b"", b"\0", b"\xff", b"-1", b"1e999", b"9" * 40, b"[", b"{", b'"', b"\n", b"nan", b"0x")
LONGEST_SECONDS = 5

MATRIX = b"Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 4096 send_done_trigger 1\n"
MATRIX += b"1->2 id 2 trigger 1 size 8192\ntrigger id 1 oneshot\n"
STF = b"add t h.f:1 a(x:2)\npacket 0 00 11 22 33\nexpect 1 00 11 ** 33\nsetdefault t a(x:1)\n"
MODELS = ("llama_405b", "deepseek_v3")
TOPOLOGY = b"Nodes 24\nTiers 2\nPodsize 24\nTier 0\nDownlink_speed_Gbps 400\nRadix_Up 2\n"
TOPOLOGY += b"Radix_Down 8\nDownlink_Latency_ns 500\nOversubscribed 2\nTier 1\n"
TOPOLOGY += b"Downlink_speed_Gbps 800\nRadix_Down 3\nDownlink_Latency_ns 2000\n"
COMMAND = b'{"command": "link", "name": "edge0_0-agg0_1", "up": false, "wait": true}'
PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
PCAP += bytes(8) + (64).to_bytes(4, "little") * 2 + bytes(64)


def damaged(draw: random.Random, content: bytes) -> bytes:
    """Return content with a few bytes changed, removed, doubled or replaced."""
    data = bytearray(content)
    for _ in range(draw.randrange(1, 6)):
        offset = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0 if offset < len(data):
                data[offset] ^= 1 << draw.randrange(8)
            case 1:
                del data[offset : offset + draw.randrange(1, 9)]
            case 2:
                data[offset:offset] = data[offset : offset + draw.randrange(1, 40)]
            case _:
                data[offset : offset + draw.randrange(3)] = draw.choice(PIECES)

    return bytes(data)


def experiment(data: bytes, _folder: Path) -> None:
    """Read an experiment file."""
    parse_experiment(data.decode(errors="replace"), "fuzz.toml")


def matrix(data: bytes, _folder: Path) -> None:
    """Read a connection matrix."""
    matrix_flows(parse_connection_matrix(data.decode(errors="replace"), "x.cm"), TREE, 4096, "ps")


def script(data: bytes, _folder: Path) -> None:
    """Read an STF script."""
    parse_script(data.decode(errors="replace"))


def command(data: bytes, _folder: Path) -> None:
    """Read a line of the control socket."""
    request = read_request(data, REQUESTS)
    if isinstance(request, SetLink):
        link_named(TREE, request.name)


def capture(data: bytes, folder: Path) -> None:
    """Read a capture."""
    path = folder / "x.pcap"
    path.write_bytes(data)
    for time_s, frame, packet in frames(path):
        decode(time_s, frame, packet.summary())


def packet(data: bytes, _folder: Path) -> None:
    """Read a packet as a host does."""
    if roce.parse(data) is not None:
        roce.is_intact(data)


def schedule(data: bytes, _folder: Path) -> None:
    """Read a GOAL schedule, text or binary."""
    goal_graph(read_goal(data, "x.goal"))


def topology(data: bytes, _folder: Path) -> None:
    """Read a topology of htsim's."""
    fabric_of(data.decode(errors="replace"), "x.topo")


def model(data: bytes, folder: Path) -> None:
    """Read a model's configuration."""
    path = folder / "config.json"
    path.write_bytes(data)
    read_model(str(path))


def footer(data: bytes, _folder: Path) -> None:
    """Read the size that a Parquet file promises to unpack to."""
    try:
        unpacked_bytes(data)
    except ValueError as error:
        raise ParquetError(str(error)) from None


def workload(data: bytes, folder: Path) -> None:
    """Read a workload, in a process of its own."""
    path = folder / "x.parquet"
    path.write_bytes(data)
    read_workload(str(path))


def trace(data: bytes, folder: Path) -> None:
    """Read Chakra traces, the first rank's damaged."""
    for rank in range(1, 4):
        if not (folder / f"x.{rank}.et").exists():
            shutil.copy(TRACES / f"step.{rank}.et", folder / f"x.{rank}.et")

    (folder / "x.0.et").write_bytes(data)
    chakra_graph(read_chakra(str(folder / "x")))


REFUSALS = (FabricError, MessageError, ScriptError, click.ClickException)
KINDS: dict[str, tuple[Callable[[bytes, Path], None], tuple[bytes, ...], float]] = {
    "packets": (
        packet,
        (DataFrames(ENDS, 1, 256).frame(7, 9), AckFrames(ENDS, 1).frame(7, 9, True, 3, 5)),
        60,
    ),
    "commands": (command, (COMMAND,), 20),
    "experiments": (
        experiment,
        tuple(file.read_bytes() for file in sorted((ROOT / "experiments").glob("*.toml"))[:6]),
        4,
    ),
    "matrices": (matrix, (MATRIX,), 10),
    "scripts": (script, (STF,), 5),
    "captures": (capture, (PCAP,), 1),
    "schedules": (
        schedule,
        ((TRACES / "ring.goal").read_bytes(), (TRACES / "ring.goal.bin").read_bytes()),
        5,
    ),
    "traces": (trace, ((TRACES / "step.0.et").read_bytes(),), 2),
    "topologies": (topology, (TOPOLOGY,), 5),
    "models": (
        model,
        tuple((ROOT / "experiments" / f"{name}.json").read_bytes() for name in MODELS),
        2,
    ),
    "footers": (footer, ((ROOT / "experiments" / "step_dense_128.parquet").read_bytes(),), 1),
    "workloads": (
        workload,
        ((ROOT / "experiments" / "step_dense_128.parquet").read_bytes(),),
        0.01,
    ),
}


@click.command()
@click.option("--count", default=100_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Damage and read inputs; a crash or a hang ends the run, with the input's number and seed."""
    shares = sum(weight for *_, weight in KINDS.values())
    with TemporaryDirectory() as folder:
        for name, (read, samples, weight) in KINDS.items():
            begun, refused = time.monotonic(), 0
            number = round(count * weight / shares)
            for i in range(number):
                draw = random.Random(f"{seed}/{name}/{i}")
                data = damaged(draw, draw.choice(samples))
                started = time.monotonic()
                try:
                    read(data, Path(folder))
                except REFUSALS:
                    refused += 1
                except Exception as error:
                    raise click.ClickException(f"{name} {i} (seed {seed}): {error!r}") from error

                if time.monotonic() - started > LONGEST_SECONDS:
                    raise click.ClickException(f"{name} {i} (seed {seed}) hangs")

            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            took = time.monotonic() - begun
            print(f"{name}: {number:,} inputs, {refused:,} refused, {took:.0f} s, {memory} MiB")


if __name__ == "__main__":
    main()
