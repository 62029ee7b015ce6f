"""The daemon on real interfaces: forwarding, rates, drops, VLAN tags, links that fail.

Needs root.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.root
WAIT_S = 30
IGNORE_OUTGOING = (263, 23, 1)
RECEIVE_BUFFER_FORCED = (socket.SOL_SOCKET, 33, 1 << 22)


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True, capture_output=True)


@pytest.fixture
def ends() -> Iterator[list[str]]:
    """Two veth pairs; the names of the hosts' ends, to which the switch's are `name + "s"`."""
    names = [f"t{os.getpid() % 100000}{i}" for i in range(2)]
    with ExitStack() as stack:
        for name in names:
            ip(f"link add {name} type veth peer name {name}s")
            stack.callback(ip, f"link del {name}")
            for end in (name, f"{name}s"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                ip(f"link set {end} up mtu 9000")
        yield names


def host(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(*IGNORE_OUTGOING)
    sock.setsockopt(*RECEIVE_BUFFER_FORCED)
    sock.settimeout(WAIT_S)
    sock.bind((name, 3))

    return sock


class Wired:
    """A switch that sends the frames of port 1 out of port 2, and hosts on both."""

    def __init__(self, process: subprocess.Popen[str], ends: list[str], stats: Path) -> None:
        self.left, self.right = (host(name) for name in ends)
        self.process = process
        self._stats = stats

    def statistics(self) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(WAIT_S)
            peer.connect(str(self._stats))
            answer: dict[str, Any] = json.loads(peer.makefile().read())
            return answer


@pytest.fixture
def wired(program: Any, ends: list[str], tmp_path: Path) -> Iterator[Callable[..., Wired]]:
    p = program
    p.header("h", kind=8)
    p.state("start", [p.extract("h")])
    p.run("out", [p.call("assign", "standard_metadata.egress_spec", 2)])
    (tmp_path / "p.json").write_bytes(p.source())
    with ExitStack() as stack:

        def start(*arguments: str) -> Wired:
            command = [
                sys.executable,
                "-m",
                "ofan_p4.softswitch.daemon.process",
                str(tmp_path / "p.json"),
            ]
            command += [
                "-i",
                f"1@{ends[0]}s",
                "-i",
                f"2@{ends[1]}s",
                "--stats-socket",
                str(tmp_path / "stats"),
            ]
            command += ["--", "--grpc-server-addr", "127.0.0.1:0", *arguments]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.terminate)
            assert process.stdout is not None
            assert "ready" in process.stdout.readline()
            net = Wired(process, ends, tmp_path / "stats")
            for sock in (net.left, net.right):
                stack.callback(sock.close)
            return net

        yield start


def frame(size: int, number: int = 0) -> bytes:
    return bytes(12) + struct.pack(">HI", 0x88B5, number) + bytes(size - 18)


def test_frames_of_all_sizes_arrive_in_order_and_are_counted(wired: Any) -> None:
    net = wired()
    sent = [frame(size, i) for i, size in enumerate((60, 1514, 4158, 9014) * 10)]
    for data in sent:
        net.left.send(data)

    assert [net.right.recv(1 << 16) for _ in sent] == sent

    ports = net.statistics()["ports"]

    assert ports["1"]["rx_packets"] == ports["2"]["tx_packets"] == len(sent)
    assert ports["2"]["tx_bytes"] == sum(map(len, sent))


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), True), (("--engine", "python"), False), (("--delay-us", "2=5"), None)],
)
def test_rings_are_used_where_machine_code_sends_at_once(
    wired: Any, options: tuple[str, ...], expected: bool | None
) -> None:
    net = wired(*options)
    sent = [frame(60 + i % 500, i) for i in range(300)]
    for data in sent:
        net.left.send(data)

    assert [net.right.recv(1 << 16) for _ in sent] == sent

    rings = [port["ring"] for port in net.statistics()["ports"].values()]

    assert rings == ([True, False] if expected is None else [expected] * 2)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_an_interface_that_goes_down_and_comes_back(
    wired: Any, ends: list[str], engine: str
) -> None:
    net = wired("--engine", engine)
    net.left.send(frame(100, 1))

    assert net.right.recv(2048) == frame(100, 1)

    ip(f"link set {ends[1]}s down")
    for i in range(50):
        net.left.send(frame(100, 2 + i))
    while net.statistics()["counts"]["received"] < 51:
        pass

    ip(f"link set {ends[1]}s up")
    ip(f"link set {ends[1]} up")
    net.right.settimeout(0.2)
    frame_number = 0
    deadline = time.monotonic() + WAIT_S
    # Carriers take their time to come back.
    while frame_number != 99 and time.monotonic() < deadline:
        net.left.send(frame(100, 99))
        with suppress(TimeoutError):
            frame_number = struct.unpack_from(">I", net.right.recv(2048), 14)[0]

    assert frame_number == 99

    stats = net.statistics()
    port = stats["ports"]["2"]

    # While it was down frames were lost, or waited for it: none is in neither account.
    assert stats["counts"]["transmitted"] == port["tx_packets"] + port["tx_failed"]


@pytest.mark.parametrize("engine", ["native", "python"])
def test_packets_wait_behind_an_interface_that_takes_no_more(
    wired: Any, ends: list[str], engine: str
) -> None:
    # Half a second's worth of frames at once.
    net = wired("--engine", engine)
    shape = "root tbf rate 20mbit burst 2kb limit 10mb"
    subprocess.run(["tc", "qdisc", "add", "dev", f"{ends[1]}s", *shape.split()], check=True)
    sent = [frame(1000, i) for i in range(600)]
    for data in sent:
        net.left.send(data)

    net.right.settimeout(3)
    arrived: list[bytes] = []
    with suppress(TimeoutError):
        while len(arrived) < len(sent):
            arrived.append(net.right.recv(1 << 16))

    stats = net.statistics()
    port = stats["ports"]["2"]

    assert port["tx_failed"] == 0
    assert len(arrived) + port["waiting_drops"] + stats["ports"]["1"]["kernel_drops"] == len(sent)

    # In order, and none twice, wherever frames waited.
    numbers = [struct.unpack_from(">I", data, 14)[0] for data in arrived]

    assert numbers == sorted(set(numbers))
    assert len(arrived) > 60


def test_a_backlog_longer_than_the_ring_leaves_without_waiting(
    program: Any, wired: Any, tmp_path: Path
) -> None:
    queued = program.call("assign", "h.kind", "standard_metadata.enq_qdepth")
    program.run("queued", [queued], pipeline="egress")
    (tmp_path / "p.json").write_bytes(program.source())
    net = wired()
    net.process.send_signal(signal.SIGSTOP)
    # With frames of 9,000 bytes 128 fit into the ring that sends, and 512 into the one before.
    sent = [frame(100, i) for i in range(500)]
    for data in sent:
        net.left.send(data)

    net.process.send_signal(signal.SIGCONT)

    # As they came: the first byte is the number of frames that waited before it.
    assert [net.right.recv(1 << 16) for _ in sent] == sent


def test_a_full_queue_drops_and_every_packet_is_accounted_for(wired: Any) -> None:
    net = wired("--rate-pps", "2=200", "--queue-packets", "2=5")
    for i in range(100):
        net.left.send(frame(100, i))

    arrived = [struct.unpack_from(">I", net.right.recv(2048), 14)[0] for _ in range(5)]

    assert arrived == [0, 1, 2, 3, 4]

    while (stats := net.statistics())["counts"]["received"] < 100:
        pass

    waiting = (
        stats["counts"]["received"]
        - stats["counts"]["transmitted"]
        - stats["ports"]["2"]["queue_drops"]
    )

    assert 0 <= waiting <= 5
    assert stats["ports"]["2"]["queue_drops"] >= 50


def test_a_delayed_port_keeps_the_order(wired: Any) -> None:
    net = wired("--delay-us", "2=20000", "--rate-bps", "2=100000000")
    sent = [frame(200, i) for i in range(30)]
    for data in sent:
        net.left.send(data)

    assert [net.right.recv(2048) for _ in sent] == sent


def test_vlan_tags_survive_the_kernel(wired: Any) -> None:
    net = wired()
    tagged = bytes(12) + struct.pack(">HHH", 0x8100, 0x6005, 0x88B5) + bytes(60)
    net.left.send(tagged)
    net.right.setsockopt(263, 8, 1)
    data, auxiliary, _, _ = net.right.recvmsg(2048, 64)
    tci, tpid = struct.unpack_from("HH", auxiliary[0][2], 16)

    assert (data, tci, tpid) == (tagged[:12] + tagged[16:], 0x6005, 0x8100)


@pytest.mark.parametrize("options", [(), ("--engine", "python"), ("--user", "nobody")])
def test_an_interface_that_is_made_again_under_its_name_is_followed(
    wired: Any, ends: list[str], options: tuple[str, ...]
) -> None:
    net = wired(*options)
    net.left.send(frame(60, 1))

    assert net.right.recv(1 << 16) == frame(60, 1)

    ip(f"link del {ends[1]}")
    until(lambda: not net.statistics()["ports"]["2"]["up"])
    net.left.send(frame(60, 2))
    until(lambda: net.statistics()["ports"]["2"]["tx_failed"] == 1)

    ip(f"link add {ends[1]} type veth peer name {ends[1]}s")
    for end in (ends[1], f"{ends[1]}s"):
        Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
        ip(f"link set {end} up mtu 9000")

    until(lambda: net.statistics()["ports"]["2"]["up"])
    with host(ends[1]) as right:
        net.left.send(frame(60, 3))
        while (seen := right.recv(1 << 16)) != frame(60, 3):
            assert seen[12:14] != frame(60)[12:14], "neither lost nor doubled"

        right.send(frame(60, 4))
        until(lambda: net.statistics()["ports"]["2"]["rx_packets"] >= 1)

    # Of the frames of this test one was lost; the last one went back to where it had come from.
    port = net.statistics()["ports"]["2"]

    assert port["tx_packets"] in (2, 3) and port["tx_failed"] == 1


def until(is_true: Callable[[], bool]) -> None:
    """Wait until the switch has come to a state."""
    limit = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.02)


def test_a_link_that_fails_is_seen_and_comes_back(wired: Any, ends: list[str]) -> None:
    net = wired()
    ip(f"link set {ends[1]} down")
    while net.statistics()["ports"]["2"]["up"]:
        pass

    net.left.send(frame(60))
    while (
        net.statistics()["ports"]["2"]["tx_failed"] + net.statistics()["ports"]["2"]["tx_packets"]
        < 1
    ):
        pass

    ip(f"link set {ends[1]} up")
    while not net.statistics()["ports"]["2"]["up"]:
        pass

    with pytest.raises(OSError, match="down"):
        net.right.recv(2048)

    net.left.send(frame(60, 7))

    assert net.right.recv(2048) == frame(60, 7)


def test_the_log_tells_every_step_of_a_packet(wired: Any, tmp_path: Path) -> None:
    net = wired("--log-file", str(tmp_path / "log"))
    net.left.send(frame(60, 9))
    net.right.recv(2048)
    lines = (tmp_path / "log").read_text().splitlines()
    told = [
        line.partition("[debug] packet 1: ")[2].split("  (")[0]
        for line in lines
        if "packet 1: " in line
    ]

    assert told[0].startswith("received 60 bytes on port 1: 00000000")
    assert told[1:4] == ["parser state start", "extracted h at byte 0: kind=0", "transition accept"]
    assert [text.split(":")[0] for text in told[-2:]] == [
        "deparser emits h, 59 more bytes",
        "sent 60 bytes from port 2",
    ]


def test_pcap_files_hold_what_passed(wired: Any, tmp_path: Path, ends: list[str]) -> None:
    net = wired("--pcap", str(tmp_path))
    net.left.send(frame(60, 9))
    net.right.recv(2048)
    net.process.terminate()
    net.process.wait(WAIT_S)
    for name, way in ((ends[0], "in"), (ends[1], "out")):
        data = (tmp_path / f"{name}s_{way}.pcap").read_bytes()
        assert data[24 + 16 :] == frame(60, 9)


def test_a_port_takes_another_rate_while_it_runs(wired: Any, tmp_path: Path) -> None:
    door = tmp_path / "rates"
    net = wired("--rate-bps", "2=100000000", "--rates-socket", str(door))

    def ask(said: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(WAIT_S)
            peer.connect(str(door))
            peer.sendall(said)
            return peer.recv(1 << 16)

    def seconds() -> float:
        began = time.monotonic()
        for number in range(4):
            net.left.send(frame(1250, number))
        for _ in range(4):
            net.right.recv(1 << 16)

        return time.monotonic() - began

    # A tenth of a second for a frame, which no scheduler takes.
    assert ask(b'{"rates_bps": {"2": 100000}}\n') == b"{}"
    assert seconds() >= 0.4
    assert ask(b'{"rates_bps": {"2": 100000000}}\n') == b"{}"
    assert min(seconds() for _ in range(5)) < 0.4

    for nonsense in (b'{"rates_bps": {"9": 1}}\n', b'{"rates_bps": {"2": 0}}\n', b"[]\n", b"\n"):
        assert b"error" in ask(nonsense)

    assert min(seconds() for _ in range(5)) < 0.4
