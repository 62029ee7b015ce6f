"""Headers that hosts put in front of IPv4 to name a packet's way: Host DR's, MRC's over SRv6."""

import numpy as np

from fattree.shape.segments import ADJACENCIES, BLOCK, DECAPSULATION
from sim.kernels.jit import at, inlined
from sim.kernels.octets import CE, IPV4, write_16, write_checksum
from sim.kernels.state import ACK

# The protocol of the inner header: IPv4.
TUNNEL = 4
IPV6 = 40
ETHERTYPE_IPV6 = 0x86DD
BLOCK_16 = BLOCK >> 16


@inlined
def wrap(world, frames, frame, packet, way, kind, length):
    """Put a packet into IP-in-IP towards its waypoint (`hostagent.packets.wrap`)."""
    octets = frames.octets
    ip = frame + frames.ip_at
    constants = world.constants
    constant = world.flows.table[at(way)]
    sender = int(constant.destination) if kind == ACK else int(constant.source)
    here = np.int64(frames.host_ips[at(sender)])

    make_room(frames, ip, IPV4)

    # Within a pod the waypoint is an agg, else a core.
    if constant.source_pod == constant.pod:
        pod = int(constant.pod)
        base = np.int64(frames.agg_ips[at(pod * constants.edge_uplinks + int(packet.route_agg))])
    else:
        plane = int(constant.pod) // constants.pods_per_plane
        edge_uplink = plane * constants.edge_uplinks + int(packet.route_agg)
        core = edge_uplink * constants.agg_uplinks + int(packet.route_core)
        base = np.int64(frames.core_ips[at(core)])

    mark = np.int64(octets[at(ip + IPV4 + 1)]) & CE
    total = length - frames.ip_at + IPV4
    write_16(octets, ip, 0x4500 | mark)
    write_16(octets, ip + 2, total)
    write_16(octets, ip + 4, 0)
    write_16(octets, ip + 6, 0x4000)
    write_16(octets, ip + 8, (64 << 8) | TUNNEL)
    write_16(octets, ip + 12, here >> 16)
    write_16(octets, ip + 14, here)
    write_16(octets, ip + 16, base >> 16)
    write_16(octets, ip + 18, base)
    write_checksum(octets, ip)


@inlined
def make_room(frames, ip, size):
    """Move a frame's bytes from IPv4 on behind a header of this size."""
    # From behind, as both places overlap.
    octets = frames.octets
    moved = frames.kept - frames.ip_at - size
    for byte in range(moved - 1, -1, -1):
        octets[at(ip + size + byte)] = octets[at(ip + byte)]


@inlined
def encapsulate(world, frames, frame, packet, way, kind, length):
    """Put a packet into IPv6 with its way in the destination (`hostagent.segment_routes`)."""
    octets = frames.octets
    ip = frame + frames.ip_at
    constants = world.constants
    constant = world.flows.table[at(way)]
    sender = int(constant.destination) if kind == ACK else int(constant.source)
    here = np.int64(frames.host_ips[at(sender)])

    make_room(frames, ip, IPV6)
    ecn = np.int64(octets[at(ip + IPV6 + 1)]) & CE
    write_16(octets, ip - 2, ETHERTYPE_IPV6)
    write_16(octets, ip, 0x6000 | (ecn << 4))
    write_16(octets, ip + 2, 0)
    write_16(octets, ip + 4, length - frames.ip_at)
    write_16(octets, ip + 6, (TUNNEL << 8) | 64)
    for word in range(8, IPV6, 2):
        write_16(octets, ip + word, 0)

    write_16(octets, ip + 8, BLOCK_16)
    write_16(octets, ip + 20, here >> 16)
    write_16(octets, ip + 22, here)
    write_16(octets, ip + 24, BLOCK_16)

    # As `fattree.shape.segments.way`.
    word_index = ip + 28
    port = constants.hosts_per_edge + int(packet.route_agg) + 1
    write_16(octets, word_index, ADJACENCIES + port)
    if constant.source_pod != constant.pod:
        port = constants.edges_per_pod * constants.edge_agg_links + int(packet.route_core) + 1
        write_16(octets, word_index + 2, ADJACENCIES + port)
        number = int(packet.edge) * constants.hosts_per_edge + int(packet.index)
        port = int(packet.pod) % constants.pods_per_plane * constants.agg_core_links + 1
        port += number % constants.agg_core_links
        write_16(octets, word_index + 4, ADJACENCIES + port)
        word_index += 4

    port = int(packet.edge) * constants.edge_agg_links + 1
    port += int(packet.index) % constants.edge_agg_links
    write_16(octets, word_index + 2, ADJACENCIES + port)
    write_16(octets, word_index + 4, DECAPSULATION)
