"""The times of a port's pauses: they are renewed, run out, or are taken for storms.

renew        a pause is sent again while its cause lasts
turn         a pause that has not been renewed ends, or a host's storm begins
trip         a pause has lasted for so long that it is a storm
"""

import numpy as np

from sim.kernels.events.gates import begin, close, give_back, held_bytes, pass_by, reopen
from sim.kernels.events.programs import egress_of
from sim.kernels.events.upcoming import OPEN, TRIPPED
from sim.kernels.jit import at, inlined
from sim.kernels.ports import FAR, announce, passage, size_of
from sim.kernels.state import DATA, LOST
from sim.kernels.switches import PORT_MASK, level_at


@inlined
def renew(world, node, port, now_ps):
    """Send a pause again if it is due."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    gate.renew_ps = now_ps + world.rooms[at(number)].again_ps
    gate.is_owed = 1
    gate.is_told = 1
    begin(world, node, port, now_ps)


@inlined
def turn(world, node, port, now_ps):
    """End a pause that has not been renewed, or begin a storm."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    if gate.state == OPEN:
        gate.storm_ps = FAR
        close(gate, now_ps, gate.until_ps)
    else:
        # Packets of this instant come to an open port.
        reopen(world, number, now_ps, now_ps - 1)
        begin(world, node, port, now_ps)


@inlined
def trip(world, frames, program, desk, window, switch, port, now_ps):
    """Take a pause for a storm, and drop or send the packets that wait."""
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    gate.state = TRIPPED
    gate.opened_ps = now_ps - 1
    if world.rooms[at(number)].drops:
        drop_all(world, frames, program, desk, window, switch, port, now_ps)
    else:
        begin(world, node, port, now_ps)


@inlined
def drop_all(world, frames, program, desk, window, switch, port, now_ps):
    """Drop all packets that wait at a port."""
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    level = level_at(node, port)
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    # The list is the far end's, too, in order of arrival: behind the packet that is being sent, and
    # before any that leaves later.
    gone_ps = passage(world, level, DATA).latency_ps
    gone_ps += now_ps if gate.leaves_ps == FAR else max(now_ps, gate.leaves_ps)
    announce(world, number, gone_ps)
    while link.cursor != link.tail:
        slot = np.int64(link.cursor)
        packet = world.pool.packets[at(slot)]
        came_by = np.int64(packet.time_ps & PORT_MASK)
        size = passage(world, level, size_of(world, packet, int(packet.status))).bytes
        packet.status |= LOST
        packet.time_ps = gone_ps
        world.ledgers[at(number)].dropped += 1
        # Programs take it out of their queue's length, and mark it, at egress.
        if program is not None:
            egress_of(world, frames, program, desk, switch, port, slot, now_ps, now_ps)

        pass_by(world, link)
        held = held_bytes(world, program, node, came_by, port, size)
        give_back(world, desk, window, node, port, came_by, size, held, now_ps)
