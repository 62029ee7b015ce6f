"""Packets of edges' own: a program's probes, which its ingress sends on as if they had arrived."""

from typing import NamedTuple

import numpy as np

from sim.kernels.blocks import DIRTY, block, is_dirty, set_length
from sim.kernels.bundles import by_address
from sim.kernels.events.programs import PACKET_OUT_BYTES, arrive, put_frame, put_state
from sim.kernels.events.upcoming import own_events
from sim.kernels.jit import at, kernel
from sim.kernels.lists import first_slot
from sim.kernels.octets import write_16, write_checksum
from sim.kernels.state import ACK, LIVE, PROBE, PROBES_SENT, Int64

# The fields of IPv4 that differ between probes.
SOURCE_AT, DESTINATION_AT = 12, 16


@by_address
class Probes(NamedTuple):
    """A probe's frame, in words, and its length, with the controller's header in front.

    An edge has `peers`, the others of its plane, and sends a probe to each in turn. Probes come by
    the port `came_by` (from 0), and are made in the pool's chunk `chunk`, which is in no list.
    """

    frame: Int64
    length: int
    peers: int
    came_by: int
    chunk: int


@kernel
def send_probes(world, frames, program, desk, probes, turn, now_ps):
    """Let each edge send its probe of a turn, at an instant that the clock has reached."""
    # `arrive` takes a copy of the record, and its block: a single slot serves all probes.
    slot = first_slot(probes.chunk)
    packet = world.pool.packets[at(slot)]
    edges = probes.peers + 1
    for edge in range(world.constants.first_agg):
        number = edge % edges
        destination = edge - number + (number + 1 + turn) % edges
        packet.time_ps = now_ps
        packet.flow = 0
        packet.psn = destination
        packet.status = ACK | PROBE
        packet.label = 0
        packet.hash = 0
        packet.log = 0
        write_probe(world, frames, desk, probes, slot, edge, destination)
        world.counters[LIVE] += 1
        world.counters[PROBES_SENT] += 1
        arrive(world, frames, program, desk, np.int64(edge), probes.came_by, now_ps, slot)
        world.wakes_ps[own_events(world, edge)] = now_ps

    put_state(frames, desk)
    put_frame(frames, desk)


@kernel
def write_probe(world, frames, desk, probes, slot, edge, destination):
    """Write the frame of a probe from one edge to another: between their first hosts' addresses."""
    is_dirty(frames, desk.free, slot)
    first = block(frames, slot)
    for word in range(frames.kept >> 3):
        frames.words[at((first >> 3) + word)] = probes.frame[at(word)]

    ip = first + PACKET_OUT_BYTES + frames.ip_at
    hosts = world.constants.hosts_per_edge
    write_address(frames, ip + SOURCE_AT, frames.host_ips[at(edge * hosts)])
    write_address(frames, ip + DESTINATION_AT, frames.host_ips[at(destination * hosts)])
    write_checksum(frames.octets, ip)
    set_length(frames, slot, np.int64(probes.length), dirty=DIRTY)


@kernel
def write_address(frames, where, address):
    """Write an IPv4 address."""
    write_16(frames.octets, where, address >> 16)
    write_16(frames.octets, where + 2, address & 0xFFFF)
