"""The routes that lead to a port, and the prefixes of all routes (`fattree.shape.addressing`)."""

from collections.abc import Iterator

from controller.entries import Prefix
from fattree.routes.groups import PointerLevel
from fattree.routes.southbound import has_choice, host_ports
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import NETWORK, agg_waypoint, core_waypoint, host_ip
from fattree.shape.topology import FatTree, Tier

# Prefix lengths of 10.pod.edge.host; a core is 10.pods.(1 + agg).(1 + index) (design, decision 5).
HOST = 32
SWITCH_NETWORK = 24
POD = 16


def southbound(tree: FatTree, links: LinkState, switch: int) -> Iterator[tuple[Prefix, int]]:
    """Yield the routes down, each with its port."""
    if has_choice(tree, switch):
        ports = host_ports(tree, links, switch)
        yield from (((host_ip(tree, host), HOST), port) for host, port in ports.items())
    else:
        yield from _below(tree, switch)


def _below(tree: FatTree, switch: int) -> Iterator[tuple[Prefix, int]]:
    pod, _ = tree.position(switch)
    match tree.tier(switch):
        case Tier.EDGE:
            for port in range(1, tree.hosts_per_edge + 1):
                yield (host_ip(tree, tree.host_at(switch, port)), HOST), port
        case Tier.AGG:
            for edge in range(tree.edges_per_pod):
                yield edge_prefix(tree, tree.edge(pod, edge)), edge + 1
        case Tier.CORE:
            first = tree.first_pod(switch)
            for far in range(tree.pods_per_plane):
                yield pod_prefix(first + far), far + 1


def southbound_count(tree: FatTree, switch: int) -> int:
    """Return how many routes `southbound` yields."""
    if not has_choice(tree, switch):
        return tree.downlinks(switch)

    return tree.hosts_per_pod if tree.tier(switch) is Tier.AGG else tree.machines


def ways_to_waypoints(tree: FatTree, switch: int) -> Iterator[tuple[Prefix, int]]:
    """Yield the routes of packets that a host has wrapped: to an agg, or through it to a core."""
    major, minor = tree.position(switch)
    plane = major // tree.pods_per_plane
    match tree.tier(switch):
        case Tier.EDGE:
            for uplink in range(tree.edge_uplinks):
                port = tree.uplink_port(switch, uplink)
                yield (agg_waypoint(tree, major, uplink), HOST), port
                # All cores through one uplink share a /24.
                if tree.cores:
                    core = core_waypoint(tree, plane, uplink, 0)
                    yield (core & ~0xFF, SWITCH_NETWORK), port
        case Tier.AGG:
            # Whichever of the parallel links a packet has come by.
            first = minor * tree.edge_agg_links
            for came_by in range(first, first + tree.edge_agg_links):
                for uplink in range(tree.agg_uplinks):
                    port = tree.uplink_port(switch, uplink)
                    yield (core_waypoint(tree, plane, came_by, uplink), HOST), port
        case Tier.CORE:
            return


def waypoint_count(tree: FatTree, switch: int) -> int:
    """Return how many routes `ways_to_waypoints` yields."""
    # An edge has two routes an uplink where there are cores.
    if tree.tier(switch) is Tier.EDGE:
        return tree.edge_uplinks * (2 if tree.cores else 1)

    return tree.uplinks(switch) * tree.edge_agg_links


def destination_prefix(tree: FatTree, level: PointerLevel, destination: int) -> Prefix:
    """Return the prefix of a pod, an edge or a host."""
    match level:
        case "pod":
            return pod_prefix(destination)
        case "edge":
            return edge_prefix(tree, destination)
        case _:
            return host_ip(tree, destination), HOST


def edge_prefix(tree: FatTree, edge: int) -> Prefix:
    """Return the /24 of an edge's hosts."""
    return host_ip(tree, edge * tree.hosts_per_edge) & ~0xFF, SWITCH_NETWORK


def pod_prefix(pod: int) -> Prefix:
    """Return the /16 of a pod."""
    return (NETWORK << 24) | (pod << 16), POD
