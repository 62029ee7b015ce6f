"""Captures of ports in virtual time, read by Scapy and by tshark where it is installed."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapNgReader

from emulation.commands.pcap import decode, text
from emulation.errors import UnsupportedError
from emulation.taps import tap_named
from emulation.virtual.capture import capture_files
from emulation.virtual.events import ARRIVE
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    Packets,
    Scenario,
    Transport,
)
from fattree.units import PS_PER_NS
from tests.python_network.fabric import PythonFabric

# The last packet is short.
MESSAGE = Collective(message_bytes=9 * 4096 + 100)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bitmaps and drops": {
        "policy": "jsq",
        "fabric": Fabric(k=4, queue_bytes=10_000),
        "transport": Transport(recovery="sack"),
    },
    "trimming": {
        "policy": "jsq",
        "fabric": Fabric(k=4, queue_bytes=10_000),
        "transport": Transport(recovery="sack", trimming=True),
    },
    "tunnels": {"policy": "host_dr"},
    "segments": {
        "policy": "mrc_srv6",
        "transport": Transport(recovery="sack"),
        "packets": Packets(tunnel_bytes=40),
    },
    "a dead link": {
        "failures": Failures(
            events=(FailureEvent(link="edge0_0-agg0_0", down_ns=900, up_ns=9000),),
            convergence_rtt=2,
        )
    },
}
NAMES = ("edge0_0:3", "agg0_0:1", "core0_0:2", "h0_0_1")
Packet = tuple[int, int, bytes]


def read(file: Path) -> list[Packet]:
    """Return time in ns, direction and bytes of each packet."""
    port = file.stem.partition("-1-")[2].replace("-", ":").encode()
    with file.open("rb") as opened:
        packets = list(RawPcapNgReader(opened))

    assert {(meta.tsresol, meta.ifname) for _, meta in packets} == {(10**9, port)}
    return [(meta.tshigh << 32 | meta.tslow, meta.direction, frame) for frame, meta in packets]


def judged(scenario: Scenario) -> dict[str, list[Packet]]:
    """Return the same packets from the readable network's events."""
    fabric = PythonFabric(scenario)
    network, tree = fabric.network, scenario.tree
    seen: dict[str, list[Packet]] = {name: [] for name in NAMES}
    note = network._note

    def noted(kind: int, time_ps: int, node: int, port: int, frame: bytes) -> None:
        note(kind, time_ps, node, port, frame)
        for name in NAMES:
            tap = tap_named(tree, name)
            here = (tap.switch, tap.port) if tap.host is None else (tree.switches + tap.host, 0)
            if kind == ARRIVE and (node, port) == here:
                seen[name].append((time_ps // PS_PER_NS, 1, frame))
            elif kind == ARRIVE and tap.host is not None and (node, port) == tree.access(tap.host):
                sent_ps = time_ps - scenario.latencies_ps[0]
                seen[name].append((sent_ps // PS_PER_NS, 2, frame))

    network._note = noted  # type: ignore[method-assign]
    egress = network._egress

    def egressed(time_ps: int, node: int, number: int, queued: Any) -> bytes | None:
        frame = egress(time_ps, node, number, queued)
        for name in NAMES:
            tap = tap_named(tree, name)
            if tap.host is None and (node, number) == (tap.switch, tap.port) and frame is not None:
                seen[name].append((time_ps // PS_PER_NS, 2, frame))

        return frame

    network._egress = egressed  # type: ignore[method-assign]
    network._count_marks_in_queues = lambda: None  # type: ignore[method-assign]
    fabric.run()
    return seen


def captured(scenario: Scenario, folder: Path) -> dict[str, Path]:
    taps = [tap_named(scenario.tree, name) for name in NAMES]
    with capture_files(taps, folder, "ofan-1-") as files:
        VirtualFabric(scenario, files=files, has_digest=False).run()

    return {tap.name: tap.path(folder, "ofan-1-", ".pcapng") for tap in taps}


@pytest.mark.parametrize("name", SETTINGS)
def test_captures_have_the_packets_of_the_readable_network(name: str, tmp_path: Path) -> None:
    scenario = Scenario(
        **{"fabric": Fabric(k=4), "collective": MESSAGE, "seed": 4, **SETTINGS[name]}
    )
    files, expected = captured(scenario, tmp_path), judged(scenario)
    for port, file in files.items():
        packets = read(file)
        assert sorted(packets) == sorted(expected[port]), port
        assert {direction for _, direction, _ in packets} == {1, 2}
        # Of a host's link the packets are known when they arrive.
        for direction in (1, 2):
            times = [time_ns for time_ns, way, _ in packets if way == direction]
            assert times == sorted(times)


@pytest.mark.parametrize("policy", ["ofan", "host_dr", "mrc_srv6"])
def test_packets_of_a_port_that_is_down_are_right_in_the_other_plane(
    policy: str, tmp_path: Path
) -> None:
    scenario = Scenario(
        policy=policy,
        fabric=Fabric(k=4, planes=2, plane_use="draw"),
        collective=MESSAGE,
        failures=Failures(events=(FailureEvent(host="h4_0_1", down_ns=100),)),
    )
    sent = [
        decode(time_ns, frame)
        for time_ns, direction, frame in read(captured(scenario, tmp_path)["h0_0_1"])
        if direction == 2
    ]
    lines = [text(packet) for packet in sent]
    assert lines and not any("WRONG" in line or "OTHER" in line for line in lines)
    # Both parts of its message, by the numbers of their queue pairs.
    assert len({packet.flow for packet in sent if packet.what == "DATA"}) == 2


def test_a_port_that_the_fabric_lacks_is_refused() -> None:
    tree = Fabric(k=4).tree
    with pytest.raises(UnsupportedError, match="edge0_0 has ports 1 to 4"):
        tap_named(tree, "edge0_0:5")
    with pytest.raises(UnsupportedError, match="h9_0_0"):
        tap_named(tree, "h9_0_0")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_them(tmp_path: Path) -> None:
    scenario = Scenario(fabric=Fabric(k=4), collective=MESSAGE, seed=4)
    file = captured(scenario, tmp_path)["edge0_0:3"]
    fields = ("frame.time_epoch", "frame.interface_name", "infiniband.bth.psn", "ip.dst")
    done = subprocess.run(
        ["tshark", "-r", file, "-T", "fields", *(f"-e{field}" for field in fields)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(read(file))
    assert {row[1] for row in rows} == {"edge0_0:3"} and all(row[2] for row in rows)
    assert [round(float(row[0]) * 1e9) for row in rows] == [packet[0] for packet in read(file)]
