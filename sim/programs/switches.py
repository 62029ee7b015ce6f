"""What a switch does in one window where a P4 program forwards: arrivals and departures, in order.

Ingress runs when a packet has arrived, egress when its last bit has left. Both see the switch's
registers, so they happen in the order of time: at equal times packets leave (by port) before others
arrive (by port), as on the virtual network (design, decision 8).
"""

import numpy as np

from sim.kernels.desk import layer_of
from sim.kernels.frames import block
from sim.kernels.jit import at, inlined, prefetch_at
from sim.kernels.ports import FAR
from sim.kernels.switches import (
    PORT_BITS,
    SLOT_BITS,
    SLOT_MASK,
    TIME_BITS,
    arrivals,
    foresee,
    release,
)
from sim.programs.ports import arrive, depart, next_of_port, put_frame, put_state

# A departure in a heap: the time within the window above the port.
PORT_MASK = (1 << PORT_BITS) - 1
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

    count, keys = arrivals(world, switch, start_ps, end_ps=end_ps, buffers=desk)
    waiting = departures(world, frames, desk, switch, start_ps, end_ps)
    sample_at = first_sample(frames, start_ps, end_ps)
    served = count
    position = 0
    for ahead in range(FORESIGHT):
        foresee_arrival(frames, keys, ahead, count)

    while True:
        leaves_at = desk.heap[0] >> PORT_BITS if waiting > 0 else FAR
        arrives_at = keys[at(position)] >> TIME_BITS if position < count else FAR

        if leaves_at < FAR and leaves_at <= min(arrives_at, sample_at):
            waiting = let_leave(
                world, frames, program, desk, switch, start_ps, end_ps, waiting=waiting
            )
            served += 1
        elif sample_at < FAR and sample_at <= arrives_at:
            sample(world, desk, switch, (start_ps + sample_at) // frames.sample_ps)
            sample_at += frames.sample_ps
            if start_ps + sample_at >= end_ps:
                sample_at = FAR
        elif arrives_at < FAR:
            key = keys[at(position)]
            foresee_arrival(frames, keys, position + FORESIGHT, count)
            position += 1
            waiting = let_arrive(
                world, frames, program, desk, switch, start_ps, end_ps, waiting=waiting, key=key
            )
        else:
            break

    put_state(frames, desk)
    put_frame(frames, desk)
    release(world, switch, desk.ends)
    return served


@inlined
def foresee_arrival(frames, keys, position, count):
    """Ask for the beginning of the block of a packet that will soon arrive, if there is one."""
    if position < count:
        address = frames.address + block(frames, keys[at(position)] & SLOT_MASK)
        prefetch_at(address)
        prefetch_at(address + LINE)


@inlined
def first_sample(frames, start_ps, end_ps):
    """Return when, from `start_ps` on, queues are first looked at, FAR if not before `end_ps`."""
    if frames.sample_ps == 0:
        return FAR

    after_ps = (start_ps + frames.sample_ps - 1) // frames.sample_ps * frames.sample_ps - start_ps
    return after_ps if start_ps + after_ps < end_ps else FAR


@inlined
def let_leave(world, frames, program, desk, switch, start_ps, end_ps, waiting):
    """Let the first of `waiting` ports send its packet; return how many then wait in the heap."""
    heap = desk.heap
    port = heap[0] & PORT_MASK
    now_ps = start_ps + (heap[0] >> PORT_BITS)
    next_ps = depart(world, frames, program, desk, switch, port, now_ps, now_ps)
    if next_ps < end_ps:
        heap[0] = ((next_ps - start_ps) << PORT_BITS) | port
    else:
        waiting -= 1
        heap[0] = heap[at(waiting)]

    sift_down(heap, waiting)
    return waiting


@inlined
def let_arrive(world, frames, program, desk, switch, start_ps, end_ps, waiting, key):
    """Let a packet arrive; return how many ports then wait in the heap."""
    now_ps = start_ps + (key >> TIME_BITS)
    # A key is (time, port, slot).
    came_by = (key >> SLOT_BITS) & PORT_MASK
    port, departure_ps = arrive(
        world, frames, program, desk, switch, came_by, now_ps, key & SLOT_MASK
    )
    if world.constants.lanes > 0:
        # What is first in its queue may be behind a packet in the lane, for which the port waits.
        if port >= 0:
            waiting = reordered(world, desk.heap, switch, port, start_ps, end_ps, waiting=waiting)
    elif departure_ps < end_ps:
        desk.heap[at(waiting)] = ((departure_ps - start_ps) << PORT_BITS) | port
        sift_up(desk.heap, waiting)
        waiting += 1

    return waiting


@inlined
def reordered(world, heap, switch, port, start_ps, end_ps, waiting):
    """Put a port's departure right after something has come to it; return how many then wait."""
    node = world.switches[at(switch)]
    if port >= node.ports:
        return waiting

    # Before it was another packet's that comes later now, or there was none.
    place = 0
    while place < waiting and heap[at(place)] & PORT_MASK != port:
        place += 1

    if place < waiting:
        waiting -= 1
        heap[at(place)] = heap[at(waiting)]

    next_ps = next_of_port(world, node, port)
    if next_ps < end_ps:
        heap[at(waiting)] = ((next_ps - start_ps) << PORT_BITS) | port
        waiting += 1

    for each in range(waiting):
        sift_up(heap, each)

    return waiting


@inlined
def departures(world, frames, desk, switch, start_ps, end_ps):
    """Put the first departure of each port before `end_ps` on the heap; return how many."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    waiting = 0
    for port in range(np.int64(node.ports)):
        link = world.links[at(first + port)]
        departure_ps = next_of_port(world, node, port)
        # With FAR as the end, all that there are.
        if departure_ps < end_ps:
            prefetch_at(frames.address + block(frames, link.cursor))
            prefetch_at(frames.address + block(frames, link.cursor) + frames.state_at)
            desk.heap[at(waiting)] = ((departure_ps - start_ps) << PORT_BITS) | port
            waiting += 1
            sift_up(desk.heap, waiting - 1)

    return waiting


@inlined
def sift_up(heap, place):
    """Move the entry at a place towards the top until its parent comes before it."""
    entry = heap[at(place)]
    while place > 0:
        parent = (place - 1) >> 1
        if heap[at(parent)] <= entry:
            break

        heap[at(place)] = heap[at(parent)]
        place = parent

    heap[at(place)] = entry


@inlined
def sift_down(heap, size):
    """Move the top entry away from the top until it comes before its children."""
    entry = heap[0]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[at(child + 1)] < heap[at(child)]:
            child += 1

        if entry <= heap[at(child)]:
            break

        heap[at(place)] = heap[at(child)]
        place = child

    heap[at(place)] = entry


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
