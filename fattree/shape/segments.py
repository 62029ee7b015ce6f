"""Micro-segments: how a packet names its way in an IPv6 destination address (SRv6, RFC 9800).

An address is a block of 32 bits and six micro-segments of 16. The first is active; the switch
that has acted on it moves the others up and zeros in (the NEXT-C-SID flavour). Each switch has a
micro-segment for each of its ports (an adjacency, the flavour of End.X), and another that takes the
outer header off (End.DT4). They are local: the same numbers mean the same port at every switch.
"""

from fattree.shape.topology import FatTree

# Of the prefix for segments, 5f00::/16 (RFC 9602).
BLOCK = 0x5F00_0000
MOST_SEGMENTS = 6
# The meaning of numbers is ours.
ADJACENCIES = 0xE000
DECAPSULATION = 0xF000


def adjacency(port: int) -> int:
    """Return the micro-segment of a switch's port."""
    return ADJACENCIES + port


def way(tree: FatTree, source: int, destination: int, label: int) -> tuple[int, ...]:
    """Return the micro-segments of a label's path between two hosts, empty under one edge."""
    here, far = tree.edge_of_host(source), tree.edge_of_host(destination)
    if here == far:
        return ()

    # Consecutive labels leave their edge by all its uplinks in turn, as often as aggs have any.
    turn, edge_uplink = divmod(label, tree.edge_uplinks)
    index = destination % tree.hosts_per_edge
    position = far % tree.edges_per_pod
    down = 1 + position * tree.edge_agg_links + index % tree.edge_agg_links
    ports = [tree.uplink_port(here, edge_uplink)]
    if here // tree.edges_per_pod != far // tree.edges_per_pod:
        pod = far // tree.edges_per_pod % tree.pods_per_plane
        number = position * tree.hosts_per_edge + index
        agg = tree.first_agg
        ports.append(tree.uplink_port(agg, turn % tree.agg_uplinks))
        ports.append(1 + pod * tree.agg_core_links + number % tree.agg_core_links)

    return (*map(adjacency, [*ports, down]), DECAPSULATION)


def address(segments: tuple[int, ...]) -> int:
    """Return the IPv6 address that carries micro-segments."""
    value = BLOCK
    for index in range(MOST_SEGMENTS):
        value = value << 16 | (segments[index] if index < len(segments) else 0)

    return value
