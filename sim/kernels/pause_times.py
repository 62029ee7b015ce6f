"""What time does to a port's pauses: they are renewed, run out, or are taken for storms.

renew        a pause is told again while its cause lasts
turn         a pause that nobody has renewed ends, or a host's storm begins
trip         a pause has lasted for so long that it is a storm
"""

import numpy as np

from sim.kernels.gates import (
    CLOSED,
    OPEN,
    TRIPPED,
    begin,
    close,
    give_back,
    pass_by,
    reopen,
)
from sim.kernels.jit import at, inlined
from sim.kernels.ports import FAR, passage, size_of
from sim.kernels.state import DATA, LOST
from sim.kernels.switches import PORT_MASK, level_at


@inlined
def renew(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """Tell a pause again if it is time; return how many events wait in the heap."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    # Another pause may have begun since.
    if gate.renew_ps != now_ps:
        return waiting

    gate.renew_ps = now_ps + world.rooms[at(number)].again_ps
    gate.is_owed = 1
    gate.is_told = 1
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def turn(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """End a pause that nobody has renewed, or begin a storm; return how many events wait."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    if gate.storm_ps == now_ps:
        gate.storm_ps = FAR
        close(gate, now_ps, gate.until_ps)
        return waiting

    if gate.state == OPEN or gate.until_ps != now_ps:
        return waiting

    # What comes at this instant comes to an open port.
    reopen(world, number, now_ps, now_ps - 1)
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def trip(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """Take a pause for a storm, and drop what waits or send it; return how many events wait."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    room = world.rooms[at(number)]
    if gate.state != CLOSED or gate.closed_ps + room.patience_ps != now_ps:
        return waiting

    gate.state = TRIPPED
    gate.opened_ps = now_ps - 1
    if room.drops:
        return drop_all(world, heap, waiting, node, port, now_ps, start_ps, end_ps)

    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def drop_all(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """Drop all packets that wait at a port; return how many events wait in the heap."""
    number = np.int64(node.first_port) + port
    level = level_at(node, port)
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    # The list is the far end's, too, which takes nothing of it that has not arrived.
    data = passage(world, level, DATA)
    gone_ps = data.sending_ps + data.latency_ps
    gone_ps += now_ps if gate.leaves_ps == FAR else max(now_ps, gate.leaves_ps)
    while link.cursor != link.tail:
        packet = world.pool.packets[at(link.cursor)]
        came_by = np.int64(packet.time_ps & PORT_MASK)
        size = passage(world, level, size_of(world, packet, int(packet.status))).bytes
        packet.status |= LOST
        packet.time_ps = gone_ps
        world.ledgers[at(number)].dropped += 1
        pass_by(world, link)
        waiting = give_back(
            world, heap, waiting, node, port, came_by, size, now_ps, start_ps, end_ps
        )

    return waiting


@inlined
def next_of_gate(world, number):
    """Return when a port next does something by itself, FAR if it waits for others."""
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    is_ready = gate.is_owed != 0 or (gate.state != CLOSED and link.cursor != link.tail)
    moves_ps = link.free_ps if gate.leaves_ps == FAR and is_ready else gate.leaves_ps
    return min(moves_ps, gate.renew_ps, turns_ps(gate), trips_ps(world, number))


@inlined
def turns_ps(gate):
    """Return when a port's pause ends or its host's storm begins, FAR if neither will."""
    return gate.storm_ps if gate.state == OPEN else gate.until_ps


@inlined
def trips_ps(world, number):
    """Return when the watchdog takes a port's pause for a storm, FAR without a pause."""
    gate = world.gates[at(number)]
    if gate.state != CLOSED:
        return FAR

    return min(FAR, gate.closed_ps + world.rooms[at(number)].patience_ps)
