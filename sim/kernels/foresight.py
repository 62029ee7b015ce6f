"""Switches that await packets: their memory is asked for while the switch before is served."""

import numpy as np

from sim.kernels.jit import at, inlined, prefetch
from sim.kernels.lists import foresee_chunk
from sim.kernels.records import CHUNK_BITS

# A switch is busy if packets may arrive by a quarter of its ports or more.
BUSY = 4
# So many groups a switch are asked for at most, and so many share a line of memory.
FEW_GROUPS = 64
GROUPS_A_LINE = 2


@inlined
def awaiting(world, first, last, end_ps):
    """Return the first of switches `first` to `last` - 1 where a packet may arrive, or `last`."""
    for switch in range(first, last):
        node = world.switches[at(switch)]
        port = np.int64(node.first_port)
        behind = port + node.ports
        while port < behind:
            if world.wakes_ps[at(port)] < end_ps:
                return switch

            port += 1

    return last


@inlined
def foresee(world, switch, end_ps):
    """Prefetch a switch's data: its links, then the memory to which they point."""
    # A large fabric lies in no cache. Its nodes are served in order, so the next switch's memory is
    # asked for now, and arrives while this switch is served.
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    behind = first + node.ports
    awaited = 0
    for number in range(first, behind):
        awaited += 1 if world.wakes_ps[at(number)] < end_ps else 0

    # Of few packets it is not worth it to ask for all ports by which they may leave.
    if BUSY * awaited >= node.ports:
        foresee_ports(world, first, behind)
    else:
        foresee_few(world, first, behind, end_ps)


@inlined
def foresee_ports(world, first, behind):
    """Prefetch the arrivals at ports, their queues, and the places of the next packets."""
    links = world.links
    pool = world.pool
    for number in range(first, behind):
        prefetch(links[at(world.inputs[at(number)])])
        prefetch(links[at(number)])

    for number in range(first, behind):
        incoming = links[at(world.inputs[at(number)])]
        outgoing = links[at(number)]
        foresee_chunk(pool, incoming.taken)
        foresee_chunk(pool, outgoing.cursor)

        if outgoing.cursor >> CHUNK_BITS != outgoing.tail >> CHUNK_BITS:
            foresee_chunk(pool, outgoing.tail)


@inlined
def foresee_few(world, first, behind, end_ps):
    """Prefetch the arrivals at those ports where a packet arrives before `end_ps`."""
    for number in range(first, behind):
        if world.wakes_ps[at(number)] < end_ps:
            prefetch(world.links[at(world.inputs[at(number)])])

    for number in range(first, behind):
        if world.wakes_ps[at(number)] < end_ps:
            foresee_chunk(world.pool, world.links[at(world.inputs[at(number)])].taken)


@inlined
def foresee_groups(routes, switch):
    """Prefetch a switch's groups if they are few; of many only some are needed."""
    # Cores have none.
    if switch + 1 < len(routes.first_group):
        first = routes.first_group[at(switch)]
        behind = min(routes.first_group[at(switch + 1)], first + FEW_GROUPS)
        for group in range(first, behind, GROUPS_A_LINE):
            prefetch(routes.group_table[at(group)])
