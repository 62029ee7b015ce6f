"""Rules of every program for every packet: routes, TTL, checksums, and the bytes left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p4src
from controller.entries import Change, Entry, Kind
from fattree.policies import POLICIES
from fattree.shape.addressing import host_ip
from tests.dataplane.rig import (
    CPU_PORT,
    Rig,
    ack,
    changed,
    data,
    internet_sum,
    rig,
    scenario,
    with_checksum,
)

SCHEMES = {
    program: next(p.slug for p in POLICIES.values() if p.program == program)
    for program in p4src.programs()
}
ARP = bytes.fromhex("ffffffffffff 020000000001 0806 0001080006040001") + bytes(20)
LLDP = bytes.fromhex("0180c200000e 020000000001 88cc 0207") + bytes(30)
IPV6 = bytes.fromhex("020000000002 020000000001 86dd 60000000") + bytes(36)


@pytest.fixture(params=p4src.programs(), scope="module")
def edge(request: pytest.FixtureRequest) -> Rig:
    """Return edge0_0 at k = 4 under every program."""
    return rig(scenario(SCHEMES[request.param]), 0)


def north(bench: Rig) -> bytes:
    """Return a frame that the program sends up.

    Where hosts put a header in front for that, it gets one down.
    """
    return data(bench.tree, 0, 1 if bench.scenario.scheme.outer_bytes else 15)


@pytest.mark.parametrize("tier", ["edge", "agg", "core"])
@pytest.mark.parametrize("program", p4src.programs())
def test_southbound_packets_take_the_port_of_their_destination(program: str, tier: str) -> None:
    tree = scenario("ofan").tree
    index = {"edge": tree.edge(1, 0), "agg": tree.agg(1, 0), "core": tree.core(0, 0)}[tier]
    bench = rig(scenario(SCHEMES[program]), index)
    for host in range(tree.hosts):
        pod, edge, position = host // 4, host // 2 % 2, host % 2
        expected = {"edge": position + 1, "agg": edge + 1, "core": pod + 1}[tier]
        if tier == "core" or (pod == 1 and (tier == "agg" or edge == 0)):
            assert bench.port_of(data(tree, 15 if host < 8 else 0, host), port=3) == expected


def test_ttl_falls_by_one_and_the_checksum_stays_right(edge: Rig) -> None:
    frame = north(edge)
    sent = edge.through(frame)
    assert sent is not None
    assert sent[1][22] == frame[22] - 1
    assert internet_sum(sent[1][14:34]) == 0xFFFF


def test_nothing_but_ttl_and_checksum_changes(edge: Rig) -> None:
    frame = north(edge)
    sent = edge.through(frame)
    assert sent is not None
    assert (sent[1][:22], sent[1][23], sent[1][26:]) == (frame[:22], frame[23], frame[26:])


@pytest.mark.parametrize(("ttl", "passes"), [(0, False), (1, False), (2, True), (255, True)])
def test_packets_whose_ttl_expires_are_dropped(edge: Rig, ttl: int, passes: bool) -> None:
    assert (edge.port_of(changed(north(edge), 22, bytes([ttl]))) is not None) == passes


@pytest.mark.parametrize("byte", [14, 15, 16, 22, 24, 26, 33])
def test_a_header_that_does_not_fit_its_checksum_is_dropped(edge: Rig, byte: int) -> None:
    frame = bytearray(north(edge))
    frame[byte] ^= 0x40
    assert edge.port_of(bytes(frame)) is None


@pytest.mark.parametrize(
    "address", ["0a000009", "0a000002", "c0a80001", "0b000002", "00000000", "ffffffff"]
)
def test_only_known_destinations_are_reached(edge: Rig, address: str) -> None:
    port = edge.port_of(changed(north(edge), 30, bytes.fromhex(address)))
    assert port == (1 if address == "0a000002" else None)


@pytest.mark.parametrize(
    "frame", [ARP, LLDP, IPV6, b"", bytes(14)], ids=["ARP", "LLDP", "IPv6", "empty", "zeros"]
)
def test_frames_that_are_not_ipv4_are_dropped_and_move_no_pointer(edge: Rig, frame: bytes) -> None:
    before = [edge.session.read_register(name) for name in edge.session.pipeline.registers]
    assert edge.port_of(frame) is None
    assert [edge.session.read_register(name) for name in edge.session.pipeline.registers] == before


def test_the_controller_gets_the_ethernet_types_that_it_asks_for(edge: Rig) -> None:
    received: list[tuple[int, bytes]] = []
    edge.session.on_packet_in = lambda port, frame: received.append((port, frame))
    entry = Entry("punt", (0x88CC,), "to_controller", ())
    edge.session.write((Change(Kind.INSERT, entry),))
    for frame in (ARP, LLDP):
        for pending in edge.switch.ingress(2, frame):
            assert pending.egress_port == CPU_PORT
            edge.switch.egress(pending)
    edge.session.write((Change(Kind.DELETE, entry),))
    assert received == [(2, LLDP)]


def test_a_packet_out_leaves_through_its_port_untouched(edge: Rig) -> None:
    edge.session.packet_out(3, LLDP)
    (pending,) = edge.switch.take_requeued()
    (sent,) = edge.switch.egress(pending)
    assert (sent.port, sent.frame) == (3, LLDP)


@pytest.mark.parametrize("protocol", [1, 6, 17, 47])
def test_other_ipv4_traffic_is_routed_unmarked(edge: Rig, protocol: int) -> None:
    frame = changed(changed(north(edge), 23, bytes([protocol])), 36, (53).to_bytes(2, "big"))
    sent = edge.through(frame)
    assert sent is not None
    assert sent[1][34:] == frame[34:]


def test_ipv4_options_are_not_supported_and_dropped(edge: Rig) -> None:
    assert edge.port_of(changed(north(edge), 14, b"\x46")) is None


def test_a_later_fragment_is_routed_without_reading_ports(edge: Rig) -> None:
    assert edge.port_of(changed(north(edge), 20, b"\x00\xb9")) is not None


@pytest.mark.parametrize("make", [data, ack])
def test_every_truncation_is_dropped_or_forwarded_whole(edge: Rig, make: object) -> None:
    frame = north(edge) if make is data else ack(edge.tree, 1, 0)
    # Ethernet, IPv4 and UDP; Themis reads the packet number, too.
    parsed = 54 if edge.scenario.policy == "themis" else 42
    for length in range(len(frame)):
        sent = edge.through(frame[:length])
        if length < parsed:
            assert sent is None
        else:
            assert sent is not None
            assert sent[1][26:] == frame[26:length]


@given(st.binary(max_size=120))
@settings(max_examples=100, deadline=None)
def test_garbage_is_dropped(noise: bytes) -> None:
    assert _any_edge().port_of(noise[:12] + b"\x86\xdd" + noise[14:]) is None
    _any_edge().port_of(noise)


@given(st.binary(min_size=20, max_size=80), st.integers(0, 15))
@settings(max_examples=200, deadline=None)
def test_garbage_behind_a_valid_address_never_reaches_another_host(noise: bytes, host: int) -> None:
    tree = _any_edge().tree
    header = b"\x45" + noise[1:12] + noise[12:16] + host_ip(tree, host).to_bytes(4, "big")
    port = _any_edge().port_of(with_checksum(bytes(12) + b"\x08\x00" + header + noise[20:]))
    assert port in ({None, host + 1} if host < 2 else {None} if host in (0, 1) else {None, 3, 4})


_EDGES: list[Rig] = []


def _any_edge() -> Rig:
    if not _EDGES:
        _EDGES.append(rig(scenario("ofan"), 0))
    return _EDGES[0]
