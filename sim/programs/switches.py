"""What a switch does in one window where a P4 program forwards: arrivals and departures, in order.

Ingress runs when a packet has arrived, egress when its last bit has left. Both see the switch's
registers, so they happen in the order of time: at equal times packets leave (by port) before others
arrive (by port), as on the virtual network (design, decision 8).
"""

import numpy as np

from sim.kernels.blocks import block
from sim.kernels.desk import layer_of
from sim.kernels.jit import at, inlined, prefetch_at
from sim.kernels.ports import FAR
from sim.kernels.switches import (
    PORT_BITS,
    PORT_MASK,
    SLOT_BITS,
    SLOT_MASK,
    TIME_BITS,
    arrivals,
    foresee,
    release,
)
from sim.programs.ports import arrive, depart, has_port, next_of_port, put_frame, put_state

# An entry of the tree of departures: the time within the window above the port. Its leaves are the
# ports, its top the one that comes first.
TOP = 1
# The time of a window in which there is no such thing: that of FAR in the tree.
NOTHING = FAR >> PORT_BITS
# How many arrivals ahead memory is asked for, and how long a line of it is.
FORESIGHT = 6
LINE = 64


@inlined
def serve_switch(world, frames, program, desk, switch, start_ps, end_ps):
    """Let packets arrive at a switch and leave it from `start_ps` until before `end_ps`.

    Return how many did.
    """
    if switch + 1 < world.constants.switches:
        foresee(world, switch + 1)
        foresee_late(world, frames, program, switch + 1)

    count, keys = arrivals(world, switch, start_ps, end_ps=end_ps, buffers=desk)
    departures(world, frames, program, desk, switch, start_ps, end_ps)
    sample_at = first_sample(frames, start_ps, end_ps)
    served = count
    position = 0
    for ahead in range(FORESIGHT):
        foresee_arrival(frames, keys, ahead, count)

    while True:
        leaves_at = desk.soonest[TOP] >> PORT_BITS
        arrives_at = keys[at(position)] >> TIME_BITS if position < count else NOTHING

        if leaves_at < NOTHING and leaves_at <= min(arrives_at, sample_at):
            let_leave(world, frames, program, desk, switch, start_ps, end_ps)
            served += 1
        elif sample_at < NOTHING and sample_at <= arrives_at:
            sample(world, desk, switch, (start_ps + sample_at) // frames.sample_ps)
            sample_at += frames.sample_ps
            if start_ps + sample_at >= end_ps:
                sample_at = NOTHING
        elif arrives_at < NOTHING:
            key = keys[at(position)]
            foresee_arrival(frames, keys, position + FORESIGHT, count)
            position += 1
            let_arrive(world, frames, program, desk, switch, start_ps, end_ps, key=key)
        else:
            break

    put_state(frames, desk)
    put_frame(frames, desk)
    release(world, switch, desk.ends)
    return served


@inlined
def foresee_arrival(frames, keys, position, count):
    """Prefetch the beginning of the block of a packet that will arrive soon, if there is one."""
    if position < count:
        address = frames.address + block(frames, keys[at(position)] & SLOT_MASK)
        prefetch_at(address)
        if 8 * frames.host_words > LINE:
            prefetch_at(address + LINE)


@inlined
def foresee_late(world, frames, program, switch):
    """Prefetch what a switch remembers of the packets that leave next, if there is anything."""
    if program.leaves == 0:
        return

    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for number in range(first, first + np.int64(node.ports)):
        cursor = np.int64(world.links[at(number)].cursor)
        prefetch_at(frames.late_address + 8 * frames.late_words * cursor)


@inlined
def first_sample(frames, start_ps, end_ps):
    """Return the time from `start_ps` to the first sample of queues, NOTHING if there is none."""
    if frames.sample_ps == 0:
        return NOTHING

    after_ps = (start_ps + frames.sample_ps - 1) // frames.sample_ps * frames.sample_ps - start_ps
    return after_ps if start_ps + after_ps < end_ps else NOTHING


@inlined
def let_leave(world, frames, program, desk, switch, start_ps, end_ps):
    """Let the port whose packet leaves first send it."""
    port = desk.soonest[TOP] & PORT_MASK
    now_ps = start_ps + (desk.soonest[TOP] >> PORT_BITS)
    next_ps = depart(world, frames, program, desk, switch, port, now_ps, now_ps)
    put(desk.soonest, port, entry(port, next_ps, start_ps, end_ps))


@inlined
def let_arrive(world, frames, program, desk, switch, start_ps, end_ps, key):
    """Let a packet arrive."""
    now_ps = start_ps + (key >> TIME_BITS)
    # A key is (time, port, slot).
    came_by = (key >> SLOT_BITS) & PORT_MASK
    port, departure_ps = arrive(
        world, frames, program, desk, switch, came_by, now_ps, key & SLOT_MASK
    )
    if world.constants.lanes > 0:
        # What is first in its queue may be behind a packet in the lane, for which the port waits.
        if has_port(world, switch, port):
            next_ps = next_of_port(world, world.switches[at(switch)], port)
            put(desk.soonest, port, entry(port, next_ps, start_ps, end_ps))
    elif departure_ps < end_ps:
        put(desk.soonest, port, entry(port, departure_ps, start_ps, end_ps))


@inlined
def departures(world, frames, program, desk, switch, start_ps, end_ps):
    """Put the first departure of each port before `end_ps` into the tree."""
    node = world.switches[at(switch)]
    tree = desk.soonest
    first = np.int64(node.first_port)
    leaves = len(tree) >> 1
    for port in range(leaves):
        tree[at(leaves + port)] = FAR

    for port in range(np.int64(node.ports)):
        departure_ps = next_of_port(world, node, port)
        # With FAR as the end, all that there are.
        if departure_ps < end_ps:
            if program.passes == 0:
                foresee_departure(frames, world.links[at(first + port)].cursor)

            tree[at(leaves + port)] = entry(port, departure_ps, start_ps, end_ps)

    for place in range(leaves - 1, 0, -1):
        tree[at(place)] = min(tree[at(2 * place)], tree[at(2 * place + 1)])


@inlined
def foresee_departure(frames, slot):
    """Prefetch the data of a packet that egress reads."""
    prefetch_at(frames.address + block(frames, slot))
    prefetch_at(frames.address + block(frames, slot) + frames.state_at)


@inlined
def entry(port, departure_ps, start_ps, end_ps):
    """Return a port's entry in the tree: its next departure within the window above its number."""
    return ((departure_ps - start_ps) << PORT_BITS) | port if departure_ps < end_ps else FAR


@inlined
def put(tree, port, own):
    """Set a port's entry, and update the minima above it in the tree."""
    # A branch that compares times is right half of the time: this has none.
    place = (len(tree) >> 1) + port
    tree[at(place)] = own
    while place > TOP:
        own = min(own, tree[at(place ^ 1)])
        place >>= 1
        tree[at(place)] = own


@inlined
def sample(world, desk, switch, index):
    """Note the longest queue of each of a switch's layers now."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for port in range(np.int64(node.ports)):
        layer = layer_of(node.tier, port >= node.south)
        occupancy = world.links[at(first + port)].occupancy
        if occupancy > desk.longest[index, layer]:
            desk.longest[index, layer] = occupancy
