"""Frames that a host has left to its interface: without checksum, or longer than the MTU."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from ofan_p4.softswitch.daemon.offloads import (
    COMPLETE,
    ECN,
    MISSING,
    NEEDS_CHECKSUM,
    TCP_V4,
    TCP_V6,
    crc32c,
    finished,
)
from ofan_p4.softswitch.daemon.offloads import UDP as UDP_SEGMENTS

WAIT_S = 30
DATA = bytes(range(256)) * 20
# With both addresses: Scapy would ask the network for them.
LINK = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
V4 = IP(src="10.0.0.1", dst="10.0.0.2", id=0xFFFE)
V6 = IPv6(src="fd00::1", dst="fd00::2")
SEGMENT = TCP(sport=1, dport=2, seq=0xFFFFFF00, flags="FPACE", options=[("Timestamp", (1, 2))])


def unfinished(packet: Packet, size: int, kind: int) -> tuple[bytes, bytes]:
    """Return a packet as the kernel hands it over, its checksum left to the interface."""
    frame = bytearray(bytes(packet))
    layer = packet[TCP] if TCP in packet else packet[UDP]
    start = len(frame) - len(layer)
    offset = 16 if TCP in packet else 6
    version = packet[IPv6] if IPv6 in packet else packet[IP]
    ends = [
        socket.inet_pton(socket.AF_INET6 if IPv6 in packet else socket.AF_INET, end)
        for end in (version.src, version.dst)
    ]
    pseudo = b"".join(ends) + struct.pack(">II", 6 if TCP in packet else 17, len(layer))
    total = sum(struct.unpack(f">{len(pseudo) // 2}H", pseudo))
    struct.pack_into(">H", frame, start + offset, total % 0xFFFF)

    return MISSING.pack(NEEDS_CHECKSUM, kind, start, size, start, offset), bytes(frame)


@pytest.mark.parametrize("network", [V4, V6, V6 / IPv6ExtHdrHopByHop()], ids=lambda x: x.summary())
@pytest.mark.parametrize("transport", [SEGMENT, UDP(sport=1, dport=2)], ids=["tcp", "udp"])
@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_checksums_are_completed_as_scapy_computes_them(
    network: Packet, transport: Packet, size: int
) -> None:
    packet = LINK / network / transport / Raw(DATA[:size])
    assert finished(*unfinished(packet, 0, 0)) == [bytes(packet)]


def test_a_udp_checksum_of_zero_is_written_in_its_other_form() -> None:
    # This payload makes the sum come out as 0, which would say "no checksum".
    packet = LINK / V4 / UDP(sport=1, dport=2) / Raw(b"\0\0")
    checksum = Ether(bytes(packet))[UDP].chksum
    packet[Raw].load = struct.pack(">H", checksum)
    (frame,) = finished(*unfinished(packet, 0, 0))

    assert Ether(frame)[UDP].chksum == 0xFFFF


def test_what_is_complete_stays_as_it_is() -> None:
    frame = bytes(LINK / V4 / SEGMENT / Raw(DATA))
    assert finished(COMPLETE, frame) == [frame]


@pytest.mark.parametrize("tag", [LINK, LINK / Dot1Q(vlan=5)], ids=["plain", "tagged"])
@pytest.mark.parametrize(
    ("network", "kind"), [(V4, TCP_V4), (V6, TCP_V6), (V6 / IPv6ExtHdrHopByHop(), TCP_V6)]
)
def test_tcp_is_cut_into_segments(tag: Packet, network: Packet, kind: int) -> None:
    whole = tag / network / SEGMENT / Raw(DATA)
    frames = finished(*unfinished(whole, 1000, kind | ECN))
    expected = []
    for number, offset in enumerate(range(0, len(DATA), 1000)):
        packet = tag / network / SEGMENT / Raw(DATA[offset : offset + 1000])
        is_last = offset + 1000 >= len(DATA)
        packet[TCP].seq = (0xFFFFFF00 + offset) & 0xFFFFFFFF
        packet[TCP].flags = "AE" + "C" * (not number) + "FP" * is_last
        if IP in packet:
            packet[IP].id = (0xFFFE + number) & 0xFFFF
        expected.append(bytes(packet))

    assert frames == expected and len(frames) == 6


def test_udp_is_cut_into_datagrams() -> None:
    whole = LINK / V4 / UDP(sport=1, dport=2) / Raw(DATA)
    frames = finished(*unfinished(whole, 1200, UDP_SEGMENTS))

    assert [bytes(Ether(frame)[UDP].payload) for frame in frames] == [
        DATA[offset : offset + 1200] for offset in range(0, len(DATA), 1200)
    ]

    for frame in frames:
        again = Ether(frame)
        del again[UDP].chksum, again[UDP].len, again[IP].chksum, again[IP].len
        assert bytes(again) == frame


@pytest.mark.parametrize(
    ("kind", "size", "start"), [(TCP_V4, 1000, 40), (TCP_V4, 1, 34), (3, 1000, 34), (99, 1000, 34)]
)
def test_what_cannot_be_cut_is_nobodys(kind: int, size: int, start: int) -> None:
    """Segments in a tunnel, of one byte, and of kinds that no interface of today leaves whole."""
    frame = bytes(LINK / V4 / SEGMENT / Raw(DATA))
    assert finished(MISSING.pack(NEEDS_CHECKSUM, kind, 0, size, start, 16), frame) == []


def test_sctp_gets_its_crc() -> None:
    assert crc32c(b"123456789") == 0xE3069283

    packet = bytes(34) + bytes(8) + bytes(4) + DATA
    (frame,) = finished(MISSING.pack(NEEDS_CHECKSUM, 0, 0, 0, 34, 8), packet)

    assert frame[42:46] == struct.pack("<I", crc32c(packet[34:]))


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Two hosts in namespaces of their own, with the offloads that a veth pair has by default.

    The switch's ends are `name + "s"`.
    """
    names = [f"o{os.getpid() % 100000}{i}" for i in (1, 2)]
    with ExitStack() as stack:
        for i, name in enumerate(names, 1):
            ip(f"netns add {name}")
            stack.callback(ip, f"netns del {name}")
            ip(f"link add {name}s type veth peer name eth0 netns {name}")
            # A namespace goes some time after it is deleted, and so would the pair.
            stack.callback(ip, f"link del {name}s")
            Path(f"/proc/sys/net/ipv6/conf/{name}s/disable_ipv6").write_text("1")
            ip(f"link set {name}s up")
            for line in ("addr add 10.9.0.{}/24 dev eth0", "addr add fd09::{}/64 dev eth0 nodad"):
                ip(f"-n {name} {line.format(i)}")

            ip(f"-n {name} link set eth0 up")

        yield names


@pytest.fixture
def switched(program: Any, hosts: list[str], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start a switch that sends frames between two hosts, and read its counts."""
    p = program
    p.header("h", kind=8)
    p.state("start", [p.extract("h")])
    far_port = p.op("^", "standard_metadata.ingress_port", 3)
    p.run("out", [p.call("assign", "standard_metadata.egress_spec", far_port)])
    (tmp_path / "p.json").write_bytes(p.source())
    with ExitStack() as stack:

        def start(*arguments: str) -> Callable[[], Any]:
            command = [sys.executable, "-m", "ofan_p4.softswitch.daemon.process"]
            command += [str(tmp_path / "p.json"), "--stats-socket", str(tmp_path / "stats")]
            command += [f"-i{i}@{name}s" for i, name in enumerate(hosts, 1)]
            command += ["--", "--grpc-server-addr", "127.0.0.1:0", *arguments]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.terminate)
            assert process.stdout is not None
            assert "ready" in process.stdout.readline()
            return counted

        def counted() -> Any:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(tmp_path / "stats"))
                return json.loads(peer.makefile().read())["ports"]

        yield start


RECEIVE = """
import socket, sys, hashlib
listener = socket.create_server((sys.argv[1], 5000), family=int(sys.argv[2]))
listener.settimeout(10)
print("ready", flush=True)
peer, _ = listener.accept()
peer.settimeout(10)
digest = hashlib.sha256()
while data := peer.recv(1 << 20):
    digest.update(data)
print(digest.hexdigest(), flush=True)
"""
SEND = """
import socket, sys, random, hashlib
data = random.Random(1).randbytes(1 << 22)
with socket.create_connection((sys.argv[1], 5000), timeout=10) as peer:
    peer.sendall(data)
print(hashlib.sha256(data).hexdigest(), flush=True)
"""


def python(name: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", name, sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.root
@pytest.mark.parametrize("address", ["10.9.0.2", "fd09::2"])
@pytest.mark.parametrize("options", [(), ("--engine", "python")], ids=["rings", "sockets"])
def test_a_tcp_connection_of_hosts_with_their_offloads_on_goes_through(
    switched: Any, hosts: list[str], address: str, options: tuple[str, ...]
) -> None:
    counted = switched(*options)
    family = str(int(socket.AF_INET6 if ":" in address else socket.AF_INET))
    # Both give up by themselves where nothing arrives.
    with python(hosts[1], RECEIVE, address, family) as receiver:
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
        with python(hosts[0], SEND, address) as sender:
            sent, _ = sender.communicate(timeout=WAIT_S)
        received, _ = receiver.communicate(timeout=WAIT_S)

    ports = counted()

    assert sent and received == sent
    # Not one frame at a time by chance: the host has left long segments to its interface.
    assert ports["1"]["cut_frames"] > 10 and ports["1"]["kernel_drops"] == 0
