"""Damaged packets, and all truncations of valid ones, through the programs of p4src."""

import json
import random
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import p4src
from benchmarks.fuzz.failure import CPU_PORT, FuzzFailure
from controller.fabric_controller import FabricController
from controller.pipeline import Pipeline
from controller.session import InProcess, Session
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.shape.addressing import host_ip, host_mac, switch_ip, switch_name
from fattree.shape.topology import FatTree
from hostagent.packets import AckFrames, DataFrames, Ends, wrap
from ofan_p4.compiler import Program, compile_file
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

EDGE = 0
ETHERNET = 14
CHECKSUM = 24
IP_END = 34
WORDS = struct.Struct(">10H")
PROGRAMS = sorted({policy.program for policy in POLICIES.values()})


def programmed(program: str) -> Switch:
    """Return an edge switch of a k = 4 fat-tree with a program and the controller's entries."""
    return served(program)[0]


def served(program: str) -> tuple[Switch, P4RuntimeService, Program]:
    """Return the same switch with its P4Runtime service and its program."""
    policy = next(policy.slug for policy in POLICIES.values() if policy.program == program)
    scenario = Scenario(policy=policy, fabric=Fabric(k=4))
    compiled = compile_file(p4src.path(program), defines={"MAX_UPLINKS": "8"})
    pipeline = Pipeline(compiled.p4info)
    tree = scenario.tree
    switch = Switch(
        EDGE + 1, lambda: 0, random.Random(1).randint, tree.ports(EDGE), cpu_port=CPU_PORT
    )
    service = P4RuntimeService(switch)
    session = Session(InProcess(service, StatusError), pipeline, EDGE + 1, switch_name(tree, EDGE))
    session.open()
    session.push(json.dumps(compiled.json).encode())

    for step in FabricController(scenario, pipeline, ()).start():
        if step.switch == EDGE:
            session.write(step.changes)

    return switch, service, compiled


def valid_packets(tree: FatTree) -> list[tuple[int, bytes]]:
    """Return (port, frame) pairs: data and ACKs, near and far, tunnels, ARP, packet-outs."""
    packets = []
    for source, destination in ((0, 1), (0, 2), (0, 15), (15, 0), (2, 1)):
        ends = Ends(
            host_mac(tree, source),
            host_mac(tree, destination),
            host_ip(tree, source),
            host_ip(tree, destination),
        )

        port = 1 if source == 0 else 3
        data = DataFrames(ends, 7, 256).frame(1234, 5)
        ack = AckFrames(ends, 7).frame(1234, 5, False, 6, 0b1011)
        packets += [
            (port, data),
            (port, ack),
            (port, wrap(data, host_ip(tree, source), switch_ip(tree, tree.switches - 1))),
        ]

    arp = bytes.fromhex(
        "ffffffffffff0200000000000806000108000604000102000000000000000000000000000000"
    ) + bytes(4)
    return [
        *packets,
        (1, arp),
        (CPU_PORT, b"\0\x80" + packets[0][1]),
        (CPU_PORT, b"\xff\xff" + arp),
    ]


def truncations(packets: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield every beginning of every packet."""
    for port, frame in packets:
        yield from ((port, frame[:length]) for length in range(len(frame) + 1))


def with_checksum(frame: bytes) -> bytes:
    """Return a frame with the right checksum where an IPv4 header would be."""
    if len(frame) < IP_END:
        return frame

    fields = WORDS.unpack_from(frame, ETHERNET)
    total: int = sum(fields) - fields[5]
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)

    return frame[:CHECKSUM] + (total ^ 0xFFFF).to_bytes(2, "big") + frame[CHECKSUM + 2 :]


def damaged(
    packets: list[tuple[int, bytes]], count: int, rng: random.Random
) -> Iterator[tuple[int, bytes]]:
    """Yield packets overwritten at random, cut off, made longer, or random altogether."""
    draw = rng.random
    noise = rng.randbytes
    for _ in range(count):
        port, frame = packets[int(draw() * len(packets))]
        kind = draw()
        if kind < 0.05:
            frame = noise(int(draw() * 200))
        elif kind < 0.9:
            index = int(draw() * min(len(frame), 80))
            size = 1 + int(draw() * 4)
            frame = frame[:index] + noise(size) + frame[index + size :]

            if kind < 0.5:
                frame = with_checksum(frame)

        if draw() < 0.2:
            frame = frame[: int(draw() * (len(frame) + 1))]

        yield port, frame


def feed(switch: Switch, packets: Iterable[tuple[int, bytes]]) -> None:
    """Put packets through a switch; FuzzFailure names the first that makes it fail."""
    ingress = switch.ingress
    egress = switch.egress
    requeued = switch.take_requeued
    port = 0
    frame = b""

    try:
        for port, frame in packets:
            waiting = ingress(port, frame)
            while waiting:
                egress(waiting.pop())
                waiting += requeued()
    except Exception as error:
        raise FuzzFailure(f"port {port}, frame {frame.hex()}: {error!r}") from error


def check_counts(switch: Switch) -> None:
    """Raise FuzzFailure unless every packet is accounted for."""
    counts = asdict(switch.counts)
    drops = sum(count for name, count in counts.items() if name.startswith("dropped"))
    if (
        counts["received"] + counts["copies"]
        != counts["transmitted"] + counts["packet_ins"] + drops
    ):
        raise FuzzFailure(f"packets are missing: {counts}")


def fuzz_packets(program: str, count: int, seed: int = 1) -> dict[str, Any]:
    """Send all truncations and `count` damaged packets to a program.

    Return what has become of them.
    """
    switch = programmed(program)
    valid = valid_packets(FatTree(4))
    started = time.process_time()
    feed(switch, truncations(valid))
    feed(switch, damaged(valid, count, random.Random(seed)))
    check_counts(switch)

    return {
        "program": program,
        "cpu_s": round(time.process_time() - started, 1),
        **asdict(switch.counts),
    }
