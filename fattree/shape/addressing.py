"""Coordinates <-> names, IPv4 and MAC addresses, device ids and interfaces (design, decision 5).

Everything follows from an index of `shape.topology`, so that every network gives every host and
switch the same name.
"""

import re
from difflib import get_close_matches
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fattree.errors import AddressError
from fattree.shape.topology import FatTree, Tier

Index = TypeVar("Index", int, NDArray[np.int64])

# 10.pod.switch.host, as in Al-Fares et al. (2008): .1 is the edge switch, hosts follow. No byte
# passes 255 at k = 128, where cores have 10.128 in front.
NETWORK = 10
FIRST_HOST = 2
PREFIXES = {Tier.EDGE: "edge", Tier.AGG: "agg", Tier.CORE: "core"}
HOST_NAME = re.compile(r"h(\d{1,3})_(\d{1,3})_(\d{1,3})", re.ASCII)
SWITCH_NAME = re.compile(r"(edge|agg|core)(\d{1,3})_(\d{1,3})", re.ASCII)
# The beginning of our names, by the words that people type for it.
TYPED = {prefix: prefix for prefix in ("h", *PREFIXES.values())} | {
    "host": "h",
    "leaf": "edge",
    "aggregation": "agg",
}


def host_coordinates(tree: FatTree, host: int) -> tuple[int, int, int]:
    """Return (pod, edge, index) of a host."""
    edge, index = divmod(host, tree.hosts_per_edge)
    pod, position = divmod(edge, tree.edges_per_pod)
    return pod, position, index


def host_name(tree: FatTree, host: int) -> str:
    """Return for example `h0_1_0`: pod 0, edge 1, first host."""
    pod, edge, index = host_coordinates(tree, host)
    return f"h{pod}_{edge}_{index}"


def host_named(tree: FatTree, name: str) -> int:
    """Return the host of a name; raises AddressError."""
    match = HOST_NAME.fullmatch(name)
    if not match:
        raise AddressError(
            f"{name!r} is not a host's name: expected hPOD_EDGE_INDEX, "
            f"as in h0_1_0{_meant(tree, name)}"
        )

    pod, edge, index = map(int, match.groups())
    if pod >= tree.pods or edge >= tree.edges_per_pod or index >= tree.hosts_per_edge:
        raise AddressError(
            f"there is no host {name} at {tree.label}: "
            f"hosts are h0_0_0 to {host_name(tree, tree.hosts - 1)}{_meant(tree, name)}"
        )

    return tree.edge(pod, edge) * tree.hosts_per_edge + index


def switch_name(tree: FatTree, switch: int) -> str:
    """Return `edge0_1` or `agg0_0` (pod, position) or `core0_1` (column of aggs, index)."""
    major, minor = tree.position(switch)
    return f"{PREFIXES[tree.tier(switch)]}{major}_{minor}"


def switch_named(tree: FatTree, name: str) -> int:
    """Return the switch of a name; raises AddressError."""
    match = SWITCH_NAME.fullmatch(name)
    if not match:
        raise AddressError(
            f"{name!r} is not a switch's name: expected edgePOD_I, aggPOD_I or coreAGG_I, "
            f"as in edge0_1 (a host's link goes by its host){_meant(tree, name)}"
        )

    prefix = match[1]
    major = int(match[2])
    minor = int(match[3])
    majors, minors = _sizes(tree)[prefix]

    if major >= majors or minor >= minors:
        are = f"{prefix} switches are {prefix}0_0 to {prefix}{majors - 1}_{minors - 1}"
        raise AddressError(
            f"there is no switch {name} at {tree.label}: "
            f"{are if minors else f'it has no {prefix} switches'}{_meant(tree, name)}"
        )

    match prefix:
        case "edge":
            return tree.edge(major, minor)
        case "agg":
            return tree.agg(major, minor)
        case _:
            return tree.core(major, minor)


def _sizes(tree: FatTree) -> dict[str, tuple[int, ...]]:
    """Return how many values each number of a name has, by the beginning of the name."""
    return {
        "h": (tree.pods, tree.edges_per_pod, tree.hosts_per_edge),
        "edge": (tree.pods, tree.edges_per_pod),
        "agg": (tree.pods, tree.aggs_per_pod),
        "core": (tree.columns, tree.cores_per_agg),
    }


def _meant(tree: FatTree, name: str) -> str:
    """Return the nearest name of a host or switch as a question in brackets, or nothing."""
    typed = name.lower()
    letters = re.split(r"[^a-z]", typed, maxsplit=1)[0]
    numbers = [int(number) for number in re.findall(r"\d+", typed, re.ASCII)]
    prefix = TYPED.get(next(iter(get_close_matches(letters, TYPED, n=1)), ""), "")
    sizes = _sizes(tree).get(prefix, ())
    # A leaf-spine has no cores to suggest.
    if not sizes or len(numbers) != len(sizes) or not all(sizes):
        return ""

    nearest = "_".join(str(min(pair)) for pair in zip(numbers, (n - 1 for n in sizes), strict=True))
    return f" (did you mean {prefix}{nearest}?)"


def link_name(tree: FatTree, link: int) -> str:
    """Return for example `edge0_1-agg0_0` or `agg0_0-core0_1`, the lower end first.

    Of parallel links each has its number behind it: `edge0_1-agg0_0/1`.
    """
    lower, upper = tree.link_ends(link)
    parallel = tree.parallel_links(lower.switch)
    number = f"/{(link - tree.first_link(lower.switch)) % parallel}" if parallel > 1 else ""
    return f"{switch_name(tree, lower.switch)}-{switch_name(tree, upper.switch)}{number}"


def link_named(tree: FatTree, name: str) -> int:
    """Return the inter-switch link between two named switches, in either order.

    Raises AddressError.
    """
    whole, slash, member = name.partition("/")
    ends = [end.strip() for end in whole.split("-")]
    for host in filter(HOST_NAME.fullmatch, ends):
        host_named(tree, host)
        raise AddressError(
            f"{name} is a host's link, which no command changes: an experiment's [failures] may,"
            f' by host = "{host}"'
        )

    if len(ends) != 2:
        typed = [match[0] for match in SWITCH_NAME.finditer(name)]
        meant = f" (did you mean {'-'.join(typed)}?)" if len(typed) == 2 else ""
        raise AddressError(
            f"{name!r} is not a link's name: expected SWITCH-SWITCH, "
            f"as in edge0_1-agg0_0 or agg0_0-core0_1{meant}"
        )

    # Switches are numbered from the bottom up, and a link belongs to its lower end (`topology`).
    lower, upper = sorted(switch_named(tree, end) for end in ends)
    first = tree.first_link(lower)
    uplinks = range(first, first + tree.uplinks(lower))
    links = [link for link in uplinks if tree.link_ends(link)[1].switch == upper]
    if len(links) > 1 and (not member.isdecimal() or int(member) >= len(links)):
        raise AddressError(f"{name} has {len(links)} links: {whole}/0 to {whole}/{len(links) - 1}")
    if links and not (slash and len(links) == 1):
        return links[int(member or 0)]

    raise AddressError(f"there is no link {name}: {_neighbours_above(tree, lower, upper)}")


def _neighbours_above(tree: FatTree, switch: int, upper: int) -> str:
    """Return the neighbours above a switch in words, and the nearest link that exists."""
    uplinks = tree.uplinks(switch)
    if not uplinks:
        return f"{PREFIXES[tree.tier(switch)]}s are not linked to each other"

    ports = range(tree.uplink_port(switch, 0), tree.uplink_port(switch, uplinks))
    above = [
        switch_name(tree, end.switch)
        for end in (tree.neighbour(switch, port) for port in ports)
        if end
    ]

    lower = switch_name(tree, switch)
    nearest = get_close_matches(switch_name(tree, upper), above, n=1)
    meant = f" (did you mean {lower}-{nearest[0]}?)" if nearest else ""
    return f"{lower} leads up to {above[0]} to {above[-1]}{meant}"


def host_ip(tree: FatTree, host: Index) -> Index:
    """Return 10.pod.edge.(2 + index) as an integer; `host` may be an array."""
    edge = host // tree.hosts_per_edge
    index = host % tree.hosts_per_edge
    pod = edge // tree.edges_per_pod
    position = edge % tree.edges_per_pod
    return (NETWORK << 24) + (pod << 16) + (position << 8) + FIRST_HOST + index


def host_of_ip(tree: FatTree, ip: int) -> int | None:
    """Return the host that owns an address, or None."""
    pod = ip >> 16 & 0xFF
    edge = ip >> 8 & 0xFF
    index = (ip & 0xFF) - FIRST_HOST
    inside = (
        ip >> 24 == NETWORK
        and (pod < tree.pods and edge < tree.edges_per_pod)
        and 0 <= index < tree.hosts_per_edge
    )

    return tree.edge(pod, edge) * tree.hosts_per_edge + index if inside else None


def switch_ip(tree: FatTree, switch: int) -> int:
    """Return a switch's address as an integer.

    Edges have 10.pod.edge.1, aggs 10.pod.(edges_per_pod + uplink).1, cores
    10.(pods + plane).(1 + edge's uplink).(1 + agg's uplink), of parallel uplinks the first.
    """
    if tree.tier(switch) is not Tier.EDGE:
        return waypoint_addresses(tree, switch)[0]

    pod, position = tree.position(switch)
    return NETWORK << 24 | pod << 16 | position << 8 | 1


def agg_waypoint(tree: FatTree, pod: int, uplink: int) -> int:
    """Return the address of the agg behind an uplink of a pod's edges."""
    return NETWORK << 24 | pod << 16 | (tree.edges_per_pod + uplink) << 8 | 1


def core_waypoint(tree: FatTree, plane: int, edge_uplink: int, agg_uplink: int) -> int:
    """Return the address of the core behind an edge's and an agg's uplink, in a plane's pods."""
    # No pod has the number of pods, or a higher number, so no core looks like a host's network.
    network = NETWORK << 24 | (tree.pods + plane) << 16
    return network | (1 + edge_uplink) << 8 | (1 + agg_uplink)


def waypoint_addresses(tree: FatTree, switch: int) -> list[int]:
    """Return all addresses of an agg or core: an address for each way up to it, first its own."""
    major, minor = tree.position(switch)
    if tree.tier(switch) is Tier.AGG:
        first = minor * tree.edge_agg_links
        return [agg_waypoint(tree, major, first + way) for way in range(tree.edge_agg_links)]

    plane, position = divmod(major, tree.aggs_per_pod)
    first, last_first = position * tree.edge_agg_links, minor * tree.agg_core_links
    return [
        core_waypoint(tree, plane, first + way, last_first + last)
        for way in range(tree.edge_agg_links)
        for last in range(tree.agg_core_links)
    ]


def dotted(ip: int) -> str:
    """Return an address as text."""
    return ".".join(str(ip >> shift & 0xFF) for shift in (24, 16, 8, 0))


def host_mac(tree: FatTree, host: int) -> int:
    """Return the MAC address 02:00 and the host's IPv4 address, as an integer."""
    # Bit 1 of the first byte means "locally administered": no maker has such addresses.
    return 0x0200 << 32 | host_ip(tree, host)


def switch_mac(tree: FatTree, switch: int) -> int:
    """Return the MAC address 02:01 and the switch's IPv4 address, as an integer."""
    return 0x0201 << 32 | switch_ip(tree, switch)


def colons(mac: int) -> str:
    """Return a MAC address as text."""
    return mac.to_bytes(6, "big").hex(":")


def device_id(switch: int) -> int:
    """Return a switch's P4Runtime device id; ids count from 1."""
    return switch + 1


def interface_name(tree: FatTree, switch: int, port: int) -> str:
    """Return for example `e0_1-3`: at most 12 characters, where the kernel allows 15."""
    return f"{switch_name(tree, switch)[0]}{'_'.join(map(str, tree.position(switch)))}-{port}"


def switch_interfaces(tree: FatTree) -> list[str]:
    """Return the interfaces of all switches, in the order of switches and ports."""
    return [
        interface_name(tree, switch, port)
        for switch in range(tree.switches)
        for port in tree.ports(switch)
    ]


def host_interface_name(tree: FatTree, host: int) -> str:
    """Return for example `h0_1_0-eth0`, at most 15 characters."""
    return f"{host_name(tree, host)}-eth0"
