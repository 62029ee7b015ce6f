"""Micro-segments: which path a label names, and how a host writes it (RFC 8200, RFC 9800)."""

import ipaddress
from collections import Counter

import pytest

from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import host_ip, host_mac
from fattree.shape.segments import DECAPSULATION, address, adjacency, way
from fattree.shape.topology import FatTree
from hostagent.packets import DataFrames, Ends
from hostagent.segment_routes import SegmentRoutes, is_marked, unwrapped

TREE = FatTree(8)
HERE, THERE = 0, 127
BUNDLES = Fabric(
    pods=3,
    edges_per_pod=2,
    hosts_per_edge=3,
    aggs_per_pod=2,
    cores_per_agg=2,
    edge_agg_links=2,
    agg_core_links=2,
)


def walked(tree: FatTree, source: int, segments: tuple[int, ...]) -> int:
    """Return the host whose edge the ports that segments name lead to."""
    switch, _ = tree.access(source)
    for segment in segments[:-1]:
        far = tree.neighbour(switch, segment - adjacency(0))
        assert far is not None
        switch = far.switch

    return switch


@pytest.mark.parametrize(
    "fabric", [Fabric(k=4), Fabric(k=6), BUNDLES, Fabric(k=4, planes=2)], ids=str
)
def test_every_label_leads_to_the_destinations_edge(fabric: Fabric) -> None:
    tree = fabric.tree
    per_plane = tree.hosts // tree.planes
    for source in range(tree.hosts):
        for destination in range(source // per_plane * per_plane, tree.hosts):
            if destination // per_plane != source // per_plane:
                break
            for label in range(20):
                segments = way(tree, source, destination, label)
                if segments:
                    assert segments[-1] == DECAPSULATION and len(segments) <= 6
                    assert walked(tree, source, segments) == tree.edge_of_host(destination)


def test_each_of_parallel_links_is_named_as_often_as_any_other() -> None:
    """Up from edge and aggregation switch by the label, down from both by the destination."""
    tree = BUNDLES.tree
    for pod in (1, 2):
        hosts = [host for host in range(tree.hosts) if host // tree.hosts_per_pod == pod]
        ways = [way(tree, HERE, host, label) for host in hosts for label in range(16)]
        for step, first, count in ((0, 4, 4), (1, 5, 4), (2, 1 + 2 * pod, 2), (3, None, 4)):
            ports = Counter(hops[step] - adjacency(0) for hops in ways)
            assert len(ports) == count and len({*ports.values()}) <= 2, step
            if first is not None:
                assert sorted(ports) == list(range(first, first + count)), step
            if step < 3:
                assert len({*ports.values()}) == 1, step


@pytest.mark.parametrize(
    ("ethertype", "protocol", "size", "is_wrapped"),
    [
        ("86dd", 4, 100, True),
        # Neighbour discovery, UDP: IPv6 with no IPv4 inside.
        ("86dd", 58, 100, False),
        ("86dd", 17, 100, False),
        ("0800", 4, 100, False),
        # The header alone is all that there is, or is cut.
        ("86dd", 4, 54, True),
        ("86dd", 4, 53, False),
    ],
)
def test_ipv6_with_ipv4_inside_alone_is_unwrapped(
    ethertype: str, protocol: int, size: int, is_wrapped: bool
) -> None:
    head = bytes(12) + bytes.fromhex(ethertype) + bytes(6) + bytes([protocol])
    frame = head + bytes(size - len(head))
    plain, seen = unwrapped(frame)
    assert (plain != frame, bool(seen)) == (is_wrapped, is_wrapped)


def test_labels_in_a_row_name_all_paths_once() -> None:
    ways = [way(TREE, HERE, THERE, label) for label in range(1000, 1016)]
    assert len({*ways}) == 16
    assert len({hops[0] for hops in ways[:4]}) == 4


def test_the_address_is_a_block_and_six_segments() -> None:
    route = address((0xE005, 0xE006, 0xE008, 0xE004, 0xF000))
    assert str(ipaddress.IPv6Address(route)) == "5f00:0:e005:e006:e008:e004:f000:0"


def test_a_frame_is_the_payload_of_an_ipv6_packet() -> None:
    ends = Ends(
        host_mac(TREE, HERE), host_mac(TREE, THERE), host_ip(TREE, HERE), host_ip(TREE, THERE)
    )
    frame = DataFrames(ends, 7, 256).frame(label=1, psn=3)
    sent = SegmentRoutes(TREE, HERE).routed(frame, THERE, label=1)
    assert sent[:12] + sent[54:] == frame[:12] + frame[14:]
    assert sent[12:14].hex() == "86dd"
    # Version, traffic class with ECT(0), flow label; length, IPv4 inside, hop limit.
    assert sent[14:22].hex() == "60200000" + f"{len(frame) - 14:04x}" + "0440"
    assert str(ipaddress.IPv6Address(sent[22:38])) == "5f00::a00:2"
    assert sent[38:54] == address(way(TREE, HERE, THERE, 1)).to_bytes(16, "big")


@pytest.mark.parametrize(
    ("header", "expected"),
    [("4503", True), ("4502", False), ("6030", True), ("6020", False), ("6003", False)],
)
def test_marks_are_found_in_either_version(header: str, expected: bool) -> None:
    assert is_marked(bytes(14) + bytes.fromhex(header), ecn_at=15) == expected


def test_what_its_header_adds_is_charged_by_the_key_of_tunnels() -> None:
    charged = Scenario.model_validate(
        {
            "policy": "mrc_srv6",
            "packets": {"tunnel_bytes": Scenario(policy="mrc_srv6").scheme.outer_bytes},
        }
    )
    assert (charged.data_bytes, charged.ack_bytes) == (4096 + 62 + 40, 64 + 40)
