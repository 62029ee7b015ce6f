"""What a switch does in one window where a P4 program forwards: arrivals and departures, in order.

Ingress runs when a packet has arrived, egress when its last bit has left. Both see the switch's
registers, so they happen in the order of time: at equal times packets leave (by port) before others
arrive (by port), as on the virtual network (design, decision 8). A packet that leaves at t reaches
the next node at t + latency, and so no window may be longer than that.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from fattree.units import PS_PER_US
from sim.frames import (
    CE,
    FRAME,
    FRAME_AT,
    FRAME_TO,
    LEAVE_KIND,
    LENGTH,
    QUEUED_AT,
    QUEUED_BEHIND,
    RECEIPTS,
    STATE_TO,
    WINDOW,
    block,
    layer_of,
    note,
    note_arrival,
    shown,
)
from sim.hosts import serve_host
from sim.jit import at, call, inlined, kernel
from sim.queues import append, following, is_gone, leave, occupy
from sim.state import ACK, CHUNK, CLOCK, HOPS, LIVE, LOST, SPARE, UNROUTABLE, UNSERVED
from sim.switches import (
    PORT_BITS,
    SLOT_BITS,
    SLOT_MASK,
    TIME_BITS,
    arrivals,
    foresee,
    release,
)
from sim.windows import chunks_needed, through_windows

# A departure in a heap: the time within the window above the port.
PORT_MASK = (1 << PORT_BITS) - 1
FAR = 1 << 62
# How many arrivals ahead memory is asked for, and how long a line of it is.
FORESIGHT = 6
LINE = 64
LOW_32 = (1 << 32) - 1
DROPPED = -1


def prefetch_at(address: int) -> None:
    """Ask for the cache line at an address, as `sim.jit.prefetch` does for a record."""


@intrinsic
def _prefetch_at(_typing, address):
    def generate(context, builder, _signature, arguments):
        number = ir.IntType(32)
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(hint, [pointer, number(0), number(3), number(1)])

        return context.get_dummy_value()

    return types.void(types.int64), generate


@overload(prefetch_at, jit_options={"_nrt": False, "forceinline": True})
def _compiled_prefetch_at(address):
    return lambda address: _prefetch_at(address)


@kernel
def advance_program(world, routes, until_ps, frames, program, desk):
    """Run from the clock to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (world, routes, frames, program, desk),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_hosts,
        serve_all_switches=serve_all_switches,
    )


@inlined
def has_room(work):
    """Return whether the next window's chunks are there, and a place for its samples."""
    world, _, frames, _, desk = work
    return world.counters[SPARE] >= chunks_needed(world) and has_samples(world, frames, desk)


@inlined
def has_samples(world, frames, desk):
    """Return whether the queues of the next window have a place."""
    if frames.sample_ps == 0:
        return True

    end_ps = world.counters[CLOCK] + world.constants.window_ps
    return end_ps // frames.sample_ps + 1 < len(desk.longest)


@inlined
def serve_all_hosts(work, end_ps):
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    world, routes, frames, _, desk = work
    return serve_programmed_hosts(
        world,
        routes,
        frames,
        desk,
        first=np.int64(0),
        last=world.constants.hosts,
        end_ps=end_ps,
    )


@inlined
def serve_all_switches(work, end_ps):
    """Serve all switches until before `end_ps`; return how many packets they handled."""
    world, _, frames, program, desk = work
    return serve_programmed_switches(
        world,
        frames,
        program,
        desk,
        first=np.int64(0),
        last=world.constants.switches,
        end_ps=end_ps,
    )


@kernel
def serve_programmed_hosts(world, routes, frames, desk, first, last, end_ps):
    """Serve hosts `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets they received or sent.
    """
    served = 0
    start_ps = world.counters[CLOCK]
    desk.marks[RECEIPTS] = 0
    desk.marks[WINDOW] = start_ps
    for host in range(first, last):
        served += serve_host(
            world, routes, frames, desk, number=host, start_ps=start_ps, end_ps=end_ps
        )

    return served


@kernel
def serve_programmed_switches(world, frames, program, desk, first, last, end_ps):
    """Serve switches `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets arrived or left.
    """
    served = 0
    start_ps = world.counters[CLOCK]
    for switch in range(first, last):
        served += serve_switch(
            world, frames, program, desk, switch, start_ps=start_ps, end_ps=end_ps
        )

    return served


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
    if departure_ps < end_ps:
        desk.heap[at(waiting)] = ((departure_ps - start_ps) << PORT_BITS) | port
        sift_up(desk.heap, waiting)
        waiting += 1

    return waiting


@inlined
def level(node, port):
    """Return the level of the link behind a port (from 0) of a switch."""
    return np.int64(node.tier) + (1 if port >= node.south else 0)


@inlined
def latency_ps(world, node, port):
    """Return the latency of the link behind a port (from 0) of a switch."""
    return world.constants.latency_ps[at(level(node, port))]


@inlined
def departures(world, frames, desk, switch, start_ps, end_ps):
    """Put the first departure of each port before `end_ps` on the heap; return how many."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    waiting = 0
    for port in range(np.int64(node.ports)):
        link = world.links[at(first + port)]
        if link.cursor != link.tail:
            departure_ps = world.pool.packets[at(link.cursor)].time_ps - latency_ps(
                world, node, port
            )
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


@inlined
def arrive(world, frames, program, desk, switch, came_by, now_ps, slot):
    """Run ingress for a packet and queue it.

    Return its port and, where it is the first there, its departure, else FAR.
    """
    constants = world.constants
    counters = world.counters
    packet = world.pool.packets[at(slot)]
    counters[HOPS] += 1
    note_arrival(world, frames, desk, switch, came_by + 1, slot)

    put_state(frames, desk)
    first = block(frames, slot)
    length = frames.words[at((first >> 3) + LENGTH)]
    size = constants.ack_bytes if packet.status & ACK else constants.data_bytes
    asked = call(
        program.ingress,
        program.contexts[at(switch)],
        frames.address + first + FRAME_AT,
        shown(frames, length),
        length,
        came_by + 1,
        size,
        now_ps,
        desk.state_address,
    )
    if asked != 0:
        counters[UNSERVED] |= asked

    # The first words of a state: (egress_spec, multicast group), (priority, growth).
    port = (desk.state[0] & LOW_32) - 1
    if desk.state[0] >> 32 != 0 or port < 0 or port >= world.switches[at(switch)].ports:
        counters[UNROUTABLE] += 1
        counters[LIVE] -= 1
        return port, FAR

    return port, enqueue(world, frames, program, desk, switch, port, now_ps, slot)


@inlined
def enqueue(world, frames, program, desk, switch, port, now_ps, slot):
    """Queue a packet that ingress has sent to a port, or drop it where it does not fit.

    Return its departure where nothing is before it, else FAR.
    """
    pool = world.pool
    constants = world.constants
    counters = world.counters
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    packet = pool.packets[at(slot)]
    is_ack = int(packet.status) & ACK
    size = constants.ack_bytes if is_ack else constants.data_bytes
    occupancy = link.occupancy + size

    if constants.capacity > 0 and occupancy > constants.capacity:
        ledger.dropped += 1
        counters[LIVE] -= 1
        if program.forget != 0:
            call(program.forget, program.queues[at(switch)], port + 1, size)

        return FAR

    is_first = link.cursor == link.tail
    start_ps, departure_ps = occupy(link, constants, level(node, port), is_ack, now_ps)
    gone = is_gone(world, number, link, start_ps)
    queued_at = append(pool, link, 2, counters)
    pool.packets[at(queued_at)] = packet
    queued = pool.packets[at(queued_at)]
    queued.time_ps = departure_ps + latency_ps(world, node, port)
    if gone:
        queued.status |= LOST

    words = frames.words
    here = block(frames, slot) >> 3
    there = block(frames, queued_at) >> 3
    words[at(there + LENGTH)] = words[at(here + LENGTH)]
    words[at(there + QUEUED_AT)] = now_ps
    words[at(there + QUEUED_BEHIND)] = link.depth
    for word in range(FRAME, FRAME + (frames.kept >> 3)):
        words[at(there + word)] = words[at(here + word)]

    desk.marks[STATE_TO] = there + (frames.state_at >> 3)
    link.depth += 1
    link.occupancy = occupancy
    link.max_bytes = max(link.max_bytes, occupancy)
    link.byte_ps += size * (departure_ps - now_ps)

    return departure_ps if is_first else FAR


@inlined
def put_state(frames, desk):
    """Put the state that ingress has last written where it belongs, if it is not there yet."""
    # Not at once: a processor that reads words which have just been written byte by byte waits for
    # them. Until somebody needs the state, or its place, something else has been done.
    there = desk.marks[STATE_TO]
    if there >= 0:
        for word in range(len(desk.state)):
            frames.words[at(there + word)] = desk.state[at(word)]

        desk.marks[STATE_TO] = -1


@inlined
def put_frame(frames, desk):
    """Put the frame that egress has last written into its block, as late as possible, too."""
    there = desk.marks[FRAME_TO]
    if there >= 0:
        for word in range(frames.kept >> 3):
            frames.words[at(there + word)] = desk.out[at(word)]

        desk.marks[FRAME_TO] = -1


@inlined
def depart(world, frames, program, desk, switch, port, now_ps, clock_ps):
    """Run egress for the packet that leaves a port at `now_ps`; programs see the time `clock_ps`.

    Return when the next one will leave, FAR if there is none.
    """
    pool = world.pool
    constants = world.constants
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    slot = np.int64(link.cursor)
    packet = pool.packets[at(slot)]
    size = constants.ack_bytes if packet.status & ACK else constants.data_bytes
    link.occupancy -= size
    link.depth -= 1

    first = block(frames, slot)
    words = frames.words
    here = first >> 3
    if desk.marks[STATE_TO] == here + (frames.state_at >> 3):
        put_state(frames, desk)

    put_frame(frames, desk)
    length = words[at(here + LENGTH)]
    urgency = words[at(here + (frames.state_at >> 3) + 1)]
    queued_ps = words[at(here + QUEUED_AT)]
    grown = call(
        program.egress,
        program.contexts[at(switch)],
        frames.address + first + FRAME_AT,
        shown(frames, length),
        length,
        frames.address + first + frames.state_at,
        port + 1,
        urgency & LOW_32,
        size + (urgency >> 32),
        0,
        0,
        clock_ps,
        queued_ps // PS_PER_US,
        words[at(here + QUEUED_BEHIND)],
        (now_ps - queued_ps) // PS_PER_US,
        link.depth,
        desk.out_address,
    )

    if grown < 0:
        # It leaves the link empty for its time, and vanishes where it would have arrived.
        if grown < DROPPED:
            world.counters[UNSERVED] |= DROPPED - 1 - grown
        if not packet.status & LOST:
            world.counters[UNROUTABLE] += 1
            packet.status |= LOST
    else:
        was_marked = frames.octets[at(first + FRAME_AT + frames.ip_at + 1)] & CE == CE
        if not was_marked and desk.out_octets[at(frames.ip_at + 1)] & CE == CE:
            world.ledgers[at(number)].marked += 1

        take_over(frames, desk, first, length, grown)
        note(frames, desk, now_ps, LEAVE_KIND, switch, port + 1, slot, packet)

    link.cursor = following(pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)

    if link.cursor == link.tail:
        return FAR

    return pool.packets[at(link.cursor)].time_ps - latency_ps(world, node, port)


@inlined
def take_over(frames, desk, first, length, grown):
    """Put a frame that egress has written into its block; zeros follow where it has shrunk."""
    desk.marks[FRAME_TO] = (first >> 3) + FRAME
    if grown != length or len(desk.log) > 0:
        put_frame(frames, desk)

    if grown != length:
        frames.words[at((first >> 3) + LENGTH)] = grown
        written = min(shown(frames, length) + grown - length, frames.kept)
        for byte in range(written, frames.kept):
            frames.octets[at(first + FRAME_AT + byte)] = 0


@kernel
def in_flight(world, end_ps):
    """Return how many packets are on their way at the end, hosts' receipts after it left out."""
    constants = world.constants
    packets = world.pool.packets
    ports = constants.ports
    count = 0
    for number in range(len(world.links)):
        link = world.links[at(number)]
        slot = np.int64(link.taken)
        while slot != link.tail:
            packet = packets[at(slot)]
            # Only of hosts' links does it matter when.
            sent_ps = packet.time_ps - constants.latency_ps[0]
            sent_ps -= constants.ack_ps[0] if packet.status & ACK else constants.data_ps[0]
            # What a host has sent after the end has not been sent.
            if not packet.status & LOST and (number < ports or sent_ps <= end_ps):
                count += 1

            slot = following(world.pool, slot)

    return count


@kernel
def depart_now(world, frames, program, desk, now_ps):
    """Let all packets leave whose last bit has left by `now_ps`, which the clock has reached."""
    constants = world.constants
    for switch in range(constants.switches):
        node = world.switches[at(switch)]
        first = np.int64(node.first_port)
        for port in range(np.int64(node.ports)):
            link = world.links[at(first + port)]
            if link.cursor != link.tail:
                packet = world.pool.packets[at(link.cursor)]
                departure_ps = packet.time_ps - latency_ps(world, node, port)
                if departure_ps <= now_ps:
                    depart(world, frames, program, desk, switch, port, departure_ps, now_ps)

    put_frame(frames, desk)


@kernel
def drain(world, frames, program, desk, now_ps):
    """Let all that waits leave after the end, in order, for what egress does to it.

    Programs see the time of the end. Neither the packets nor the ports are good for anything
    afterwards.
    """
    for switch in range(world.constants.switches):
        waiting = departures(world, frames, desk, switch, now_ps, FAR)
        while waiting > 0:
            port = desk.heap[0] & PORT_MASK
            leaves_ps = now_ps + (desk.heap[0] >> PORT_BITS)
            next_ps = depart(world, frames, program, desk, switch, port, leaves_ps, now_ps)
            if next_ps < FAR:
                desk.heap[0] = ((next_ps - now_ps) << PORT_BITS) | port
            else:
                waiting -= 1
                desk.heap[0] = desk.heap[at(waiting)]

            sift_down(desk.heap, waiting)

    put_frame(frames, desk)
