"""A machine's window: it merges arrivals with its links' opportunities to send.

Flows are paced and pull: a host has no queue of data but takes the next packet from the flow that
has been ready longest when the link is free (simulator model, "Hosts"; decision 3).
`sim.kernels.receiving` handles arrivals, `sim.kernels.sending` departures, `sim.kernels.ready` the
order of flows.
"""

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.blocks import foresee_block, give_back
from sim.kernels.desk import note_arrival, note_control, note_receipt
from sim.kernels.frames import is_own
from sim.kernels.jit import at, inlined, prefetch
from sim.kernels.lists import following, foresee_chunk, leave
from sim.kernels.planes import ARRIVES, ENDS, HEEDS, MOVES, SENDS, move, note_event, with_moved
from sim.kernels.ready import end_computation
from sim.kernels.receiving import receive
from sim.kernels.records import CHUNK, CHUNK_BITS
from sim.kernels.sending import send
from sim.kernels.state import ACK, LIVE, LOST, MISDELIVERED, RECEIVED

# The end of the fields that every packet changes in a sender, in lines of memory.
LINE_BYTES = 64
SENDER_LINES = 5
# How many arrivals ahead a host looks.
AHEAD = 3


@inlined
def serve_machine(world, routes, frames, desk, number, start_ps, end_ps):
    """Receive and send at a machine's hosts from `start_ps` until before `end_ps`.

    A machine's hosts are its NICs, one per plane: a flow's end at one NIC may start flows at
    another, and a NIC may send for another (`sim.kernels.planes`). `frames` and `desk` are None
    where packets have no bytes (`sim.kernels.frames`). Return how many packets it received or sent.
    """
    now_ps = start_ps
    count = 0
    foresee_blocks(world, frames, number)
    while True:
        first_ps, first, host, heap = next_of_machine(world, number, now_ps)
        if first_ps >= end_ps:
            sleep(world, number, first_ps)
            return count

        count += 1
        now_ps = first_ps
        if first != ARRIVES:
            note_event(world, number, now_ps)

        if first == SENDS:
            send(world, routes, frames, desk, host, heap, now_ps)
        elif first == ARRIVES:
            take_arrival(world, frames, desk, host, start_ps)
        else:
            end_move_or_heed(world, desk, host, heap, first, now_ps)


@inlined
def next_of_machine(world, number, now_ps):
    """Return a machine's next event from `now_ps` on: when, its kind, the host and the heap."""
    constants = world.constants
    host = number
    first_ps, first = next_of_host(world, number, now_ps)
    for plane in range(1, constants.planes):
        nic = number + plane * constants.machines
        next_ps, event = next_of_host(world, nic, now_ps)
        if next_ps < first_ps or (next_ps == first_ps and event < first):
            first_ps, first, host = next_ps, event, nic

    if constants.is_drawing:
        return with_moved(world, number, first_ps, first, host)

    return first_ps, first, host, host


@inlined
def end_move_or_heed(world, desk, number, heap, event, now_ps):
    """End a computation of a host, or move a flow, or pause the host, or let it continue."""
    if event == ENDS:
        end_computation(world, number, now_ps)
    elif event == MOVES:
        move(world, heap)
    else:
        heed(world, desk, number)


@inlined
def sleep(world, number, until_ps):
    """Let a machine sleep until its next event, or until a packet is announced before that."""
    constants = world.constants
    for plane in range(constants.planes):
        world.wakes_ps[at(constants.ports + number + plane * constants.machines)] = until_ps


@inlined
def awake(world, first, last, end_ps):
    """Return the first of machines `first` to `last` - 1 with an event before `end_ps`, or `last`.

    Most machines of a training step wait most of the time.
    """
    constants = world.constants
    for machine in range(first, last):
        for plane in range(constants.planes):
            host = machine + plane * constants.machines
            if world.wakes_ps[at(constants.ports + host)] < end_ps:
                return machine

    return last


@inlined
def foresee_machine(world, number, later):
    """Prefetch the data of a machine's host, and the links of the machine behind it.

    Data of a machine's other hosts are loaded when they are used.
    """
    # A large fabric lies in no cache (`sim.kernels.foresight`). Links say where packets are,
    # so they are asked for one machine earlier.
    constants = world.constants
    if later + 1 < constants.machines:
        prefetch(world.hosts[at(later + 1)])
        prefetch(world.hosts[at(later + 1)], LINE_BYTES)

    if later < constants.machines:
        prefetch(world.links[at(world.hosts[at(later)].towards)])
        prefetch(world.links[at(constants.ports + later)])

    host = world.hosts[at(number)]
    taken = world.links[at(host.towards)].taken
    tail = world.links[at(constants.ports + number)].tail
    foresee_chunk(world.pool, taken)
    foresee_chunk(world.pool, tail)
    if host.heap_size > 0:
        flow = int(world.heap[at(host.heap_first)])
        prefetch(world.flows.table[at(flow)])
        # After the last flow of a host none has a sender.
        sender = max(world.flows.sender_of[at(flow)], 0)
        for line in range(SENDER_LINES):
            prefetch(world.flows.senders[at(sender)], LINE_BYTES * line)


@inlined
def foresee_blocks(world, frames, number):
    """Prefetch the bytes of the first packets that a machine's host receives and sends."""
    if frames is not None:
        taken = np.int64(world.links[at(world.hosts[at(number)].towards)].taken)
        tail = np.int64(world.links[at(world.constants.ports + number)].tail)
        for ahead in range(AHEAD):
            # Beyond a chunk's end there is another's slot, which does no harm.
            foresee_block(frames, min(taken + ahead, taken | (CHUNK - 1)))
            foresee_block(frames, min(tail + ahead, tail | (CHUNK - 1)))


@inlined
def foresee_arrival(world, frames, slot, tail):
    """Prefetch the bytes of a packet that will be taken soon, and its sender's data about it."""
    # Of a long message a sender remembers more than caches hold.
    later = slot + AHEAD
    is_here = later >> CHUNK_BITS == slot >> CHUNK_BITS
    if is_here and (tail >> CHUNK_BITS != slot >> CHUNK_BITS or later < tail):
        foresee_block(frames, later)
        packet = world.pool.packets[at(later)]
        if packet.status & ACK:
            flow = world.flows.table[at(packet.flow)]
            entry = np.int64(packet.psn) & (flow.ring_length - 1)
            prefetch(world.flows.outstanding[at(flow.ring + entry)])


@inlined
def next_of_host(world, number, now_ps):
    """Return the time and kind of a host's next event from `now_ps` on."""
    # Arrivals at an instant come before departures then (decision 8): an ACK may change the next
    # packet, or stop it. So may a computation that ends.
    host = world.hosts[at(number)]
    arrival_ps = next_arrival(world.pool, world.links[at(first_list(world, host.towards))])
    data_ps = max(host.ready_ps, host.data_free_ps)
    send_ps = max(host.free_ps, now_ps if host.acks > 0 else max(now_ps, data_ps))
    if world.constants.is_pausing:
        # A pause holds for packets sent after it has come, and before it ends.
        send_ps = max(send_ps, host.until_ps)
        heed_ps = next_arrival(world.pool, lane_towards(world, host))
        if heed_ps < min(arrival_ps, send_ps, host.timer_ps):
            return heed_ps, HEEDS

    if arrival_ps <= min(send_ps, host.timer_ps):
        return arrival_ps, ARRIVES

    return (host.timer_ps, ENDS) if host.timer_ps <= send_ps else (send_ps, SENDS)


@inlined
def lane_towards(world, host):
    """Return the lane of the link towards a host."""
    return world.links[at(world.constants.lanes + host.towards)]


@inlined
def heed(world, desk, number):
    """Pause a host, or let it continue."""
    host = world.hosts[at(number)]
    lane = lane_towards(world, host)
    slot = lane.taken
    frame = world.pool.packets[at(slot)]
    world.counters[LIVE] -= 1
    if not frame.status & LOST:
        node = world.constants.switches + number
        note_control(desk, frame.time_ps, node, 0, np.int64(frame.status))
        if frame.status and frame.time_ps >= host.until_ps:
            host.closed_ps = frame.time_ps

        lasts_ps = world.rooms[at(host.towards)].lasts_ps
        host.until_ps = frame.time_ps + lasts_ps if frame.status else 0

    lane.taken = following(world.pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(world.pool, slot, world.counters)


@inlined
def take_arrival(world, frames, desk, number, start_ps):
    """Receive the next packet on the link towards a host."""
    pool = world.pool
    link = world.links[at(first_list(world, world.hosts[at(number)].towards))]
    slot = link.taken
    foresee_arrival(world, frames, slot, link.tail)
    if is_accepted(world, frames, desk, number, slot, start_ps):
        packet = pool.packets[at(slot)]
        receive(world, frames, number, packet, packet.time_ps)

    if frames is not None:
        give_back(frames, desk.free, slot)

    link.taken = following(pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)


@inlined
def first_list(world, number):
    """Return which of a link and its lane has the packet that arrives first."""
    # Pauses are heeded apart, after all other events of their instant.
    lane = world.constants.lanes + number
    if world.constants.lanes > 0 and not world.constants.is_pausing:
        arrival_ps = next_arrival(world.pool, world.links[at(lane)])
        if arrival_ps < next_arrival(world.pool, world.links[at(number)]):
            return lane

    return np.int64(number)


@inlined
def next_arrival(pool, link):
    """Return the arrival of the first packet that is not taken yet, NEVER if there is none."""
    return pool.packets[at(link.taken)].time_ps if link.taken != link.tail else NEVER


@inlined
def is_accepted(world, frames, desk, number, slot, start_ps):
    """Return whether a packet is for this host; if so, its record gets the fields of its bytes."""
    packet = world.pool.packets[at(slot)]
    if frames is None or packet.status & LOST:
        return True

    note_receipt(desk, packet.time_ps - start_ps)
    note_arrival(world, frames, desk, world.constants.switches + number, 0, slot)
    world.counters[RECEIVED] += 1
    if is_own(world, frames, number, slot):
        return True

    world.counters[MISDELIVERED] += 1
    world.counters[LIVE] -= 1
    return False
