"""A packet in a P4 program: ingress and queue at its arrival, egress at its departure."""

import numpy as np

from fattree.shape.topology import Level
from fattree.units import PS_PER_US
from sim.kernels.blocks import (
    DIRTY,
    QUEUED_AT,
    QUEUED_BEHIND,
    block,
    length_of,
    set_length,
)
from sim.kernels.desk import FRAME_TO, LEAVE_KIND, OWN_KIND, STATE_TO, note, note_arrival
from sim.kernels.frames import shown
from sim.kernels.jit import at, call, inlined
from sim.kernels.octets import is_marked_at, read_16
from sim.kernels.ports import (
    HOST_LEVEL,
    NO_SLOT,
    first_way,
    is_urgent,
    let_go,
    offer,
    passage,
    size_of,
)
from sim.kernels.state import (
    DATA,
    HIGHEST_PORT,
    HOPS,
    LIVE,
    LOST,
    MISDIRECTED,
    PROBE,
    PROBES_TAKEN,
    SMALL,
    UNROUTABLE,
    UNSERVED,
)
from sim.kernels.switches import EDGE, level_at, shared_room

EDGE_LEVEL = int(Level.EDGE_AGG)
# That of frames with a program's header between edges (include/between_edges.p4).
ETHERTYPE_EDGE_HEADER = 0x88B6
# The egress_spec that drops a packet, as BMv2 has it.
DROP_PORT = 511
LOW_32 = (1 << 32) - 1
DROPPED = -1
# In place of the port of a packet that goes nowhere.
NO_PORT = -1
# The controller's header in front of a packet that a switch is to send (`packet_out`).
PACKET_OUT_BYTES = 2


@inlined
def arrive(world, frames, program, desk, switch, came_by, now_ps, slot):
    """Let a program handle a packet that arrives, and queue it.

    Return its port if that has something else to send first now, else NO_PORT.
    """
    if program.passes != 0:
        return arrive_at_once(world, frames, program, desk, switch, came_by, now_ps, slot)

    port = ingress(world, frames, program, desk, switch, came_by, now_ps, slot)
    if port == NO_PORT:
        return port

    return enqueue(world, frames, program, desk, switch, came_by, port, now_ps, slot)


@inlined
def ingress(world, frames, program, desk, switch, came_by, now_ps, slot):
    """Return the port (from 0) to which a program sends a packet that arrives, or NO_PORT."""
    note_hop(world, frames, desk, switch, came_by, slot)
    packet = world.pool.packets[at(slot)]
    put_state(frames, desk)
    first = block(frames, slot)
    length = length_of(frames, slot)
    node = world.switches[at(switch)]
    came_bytes = bytes_in(world, packet, node, came_by)
    asked = call(
        program.ingress,
        program.contexts[at(switch)],
        frames.address + first,
        shown(frames, length),
        length,
        came_by + 1,
        came_bytes,
        now_ps,
        desk.state_address,
    )
    # Egress gets a packet's length on hosts' links, plus its growth since then.
    desk.state[1] += (came_bytes - bytes_of(world, packet, HOST_LEVEL)) << 32
    if asked != 0:
        world.counters[UNSERVED] |= asked

    # The first words of a state: (egress_spec, multicast group), (priority, growth).
    port = (desk.state[0] & LOW_32) - 1
    is_one = desk.state[0] >> 32 == 0 and port + 1 != DROP_PORT
    if not is_one or not has_port(world, switch, port):
        return turn_away(world, node, came_by, packet, port, is_misdirected=is_one)

    return port


@inlined
def note_hop(world, frames, desk, switch, came_by, slot):
    """Count and log a packet that arrives at a switch."""
    if came_by < world.switches[at(switch)].ports:
        world.counters[HOPS] += 1
        note_arrival(world, frames, desk, switch, came_by + 1, slot)
    else:
        packet = world.pool.packets[at(slot)]
        note(frames, desk, packet.time_ps, OWN_KIND, switch, 0, slot, packet)


@inlined
def bytes_of(world, packet, level):
    """Return a packet's length in bytes on a link of a level, as programs see it."""
    return passage(world, level, size_of(world, packet, int(packet.status))).bytes


@inlined
def bytes_in(world, packet, node, came_by):
    """Return a packet's length as ingress sees it, on the link by which it came."""
    # A switch's own packet comes as the controller's do, with their header.
    if came_by >= node.ports:
        return bytes_of(world, packet, HOST_LEVEL) + PACKET_OUT_BYTES

    return bytes_of(world, packet, level_at(node, came_by))


@inlined
def more_bytes(world, level):
    """Return the length of a program's header between edges on links of a level."""
    return passage(world, level, DATA).bytes - passage(world, HOST_LEVEL, DATA).bytes


@inlined
def ip_of(world, frames, first):
    """Return where IPv4 or IPv6 begins in the frame that came in, which begins at `first`."""
    # The link by which a packet came is not remembered, but its Ethernet type has not changed.
    ip = first + frames.ip_at
    more = more_bytes(world, EDGE_LEVEL)
    has_header = more > 0 and read_16(frames.octets, ip - 2) == ETHERTYPE_EDGE_HEADER
    return ip + more if has_header else ip


@inlined
def has_port(world, switch, port):
    """Return whether a switch has a port (from 0)."""
    return 0 <= port < world.switches[at(switch)].ports


@inlined
def turn_away(world, node, came_by, packet, port, is_misdirected):
    """Count a packet that is dropped, or sent to a port that does not exist; return NO_PORT."""
    counters = world.counters
    counters[LIVE] -= 1
    # A probe ends at the edge to which it has come from above.
    is_from_above = node.tier == EDGE and node.south <= came_by < node.ports
    if packet.status & PROBE and is_from_above and not is_misdirected:
        counters[PROBES_TAKEN] += 1
        return NO_PORT

    counters[UNROUTABLE] += 1
    if is_misdirected:
        counters[MISDIRECTED] += 1
        counters[HIGHEST_PORT] = max(counters[HIGHEST_PORT], port + 1)

    return NO_PORT


@inlined
def arrive_at_once(world, frames, program, desk, switch, came_by, now_ps, slot):
    """Let a packet arrive, for a program that makes the outgoing frame at once."""
    note_hop(world, frames, desk, switch, came_by, slot)
    packet = world.pool.packets[at(slot)]
    first = block(frames, slot)
    length = length_of(frames, slot)
    node = world.switches[at(switch)]
    came_bytes = bytes_in(world, packet, node, came_by)
    more = came_bytes - bytes_of(world, packet, HOST_LEVEL)
    was_marked = is_marked_at(frames.octets, first + frames.ip_at + more)
    passed = call(
        program.passes,
        program.contexts[at(switch)],
        frames.address + first,
        shown(frames, length),
        length,
        came_by + 1,
        came_bytes,
        now_ps,
        desk.state_address,
        desk.out_address,
    )
    if passed < 0:
        return turn_away(world, node, came_by, packet, NO_PORT, is_misdirected=False)

    port = (passed & LOW_32) - 1
    if not has_port(world, switch, port):
        return turn_away(world, node, came_by, packet, port, is_misdirected=True)

    if passed >> 32 != 0:
        take_over(frames, desk, slot, length, passed >> 32)
        put_frame(frames, desk)

    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    is_first = link.cursor == link.tail
    free = room_at(world, switch, number, now_ps)
    status = int(packet.status)
    level = level_at(node, port)
    queued_at = offer(world, number, level, packet, status, now_ps, free)
    if queued_at == NO_SLOT:
        forget(program, switch, port, came_bytes)
        return NO_PORT

    ip = first + frames.ip_at + more_bytes(world, level)
    if not was_marked and is_marked_at(frames.octets, ip):
        world.ledgers[at(number)].marked += 1

    for word in range(frames.late_words):
        frames.late[at(queued_at * frames.late_words + word)] = desk.state[at(word)]

    link.depth += 1
    return port if is_first else NO_PORT


@inlined
def room_at(world, switch, number, now_ps):
    """Return how many bytes may wait at a port that drops packets without room."""
    if world.constants.alpha > 0:
        return shared_room(world, switch, number, now_ps)

    return np.int64(world.constants.capacity)


@inlined
def forget(program, switch, port, size):
    """Take bytes that ingress has sent to a port out of a program's queue length."""
    if program is not None and program.forget != 0:
        call(program.forget, program.queues[at(switch)], port + 1, size)


@inlined
def enqueue(world, frames, program, desk, switch, came_by, port, now_ps, slot):
    """Offer a packet and its frame to the port that ingress has chosen.

    Return that port if it has something else to send first now, else NO_PORT.
    """
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    packet = world.pool.packets[at(slot)]
    status = int(packet.status)
    is_first = link.cursor == link.tail
    free = room_at(world, switch, number, now_ps)
    # Ingress has added the length with which the packet came in.
    size = bytes_in(world, packet, node, came_by)
    queued_at = offer(world, number, level_at(node, port), packet, status, now_ps, free)
    if queued_at == NO_SLOT:
        forget(program, switch, port, size)
        return NO_PORT

    if is_urgent(int(world.pool.packets[at(queued_at)].status)):
        # A packet that overtakes the queue is not in it. Ingress's additions to the queue stand
        # above its depth, for egress to take out again.
        forget(program, switch, port, size)
        behind = (size << 32) | np.int64(link.depth)
        cut = np.int64(0)
        if not status & SMALL:
            # As `hostagent.forms.Forms.trimmed`.
            less = world.constants.data_bytes - bytes_of(world, packet, HOST_LEVEL)
            cut = max(np.int64(1), frames.cut - less)

        move_frame(frames, desk, queued_at, cut=cut, now_ps=now_ps, behind=behind)
        # The first packet of the queue may be behind this packet, for which the port waits.
        return port

    behind = np.int64(link.depth)
    move_frame(frames, desk, queued_at, cut=np.int64(0), now_ps=now_ps, behind=behind)
    link.depth += 1
    return port if is_first else NO_PORT


@inlined
def move_frame(frames, desk, queued_at, cut, now_ps, behind):
    """Note a frame's time and queue, without its last `cut` bytes, and egress's data."""
    if cut > 0:
        set_length(frames, queued_at, length_of(frames, queued_at) - cut, dirty=DIRTY)

    queued = (block(frames, queued_at) + frames.kept) >> 3
    frames.words[at(queued + QUEUED_AT)] = now_ps
    frames.words[at(queued + QUEUED_BEHIND)] = behind
    desk.marks[STATE_TO] = (block(frames, queued_at) + frames.state_at) >> 3


@inlined
def put_state(frames, desk):
    """Move the state that ingress wrote last to its place, if it is not there yet."""
    # Not at once: a processor that reads words which have just been written byte by byte waits for
    # them. Until somebody needs the state, or its place, something else has been done.
    target = desk.marks[STATE_TO]
    if target >= 0:
        for word in range(len(desk.state)):
            frames.words[at(target + word)] = desk.state[at(word)]

        desk.marks[STATE_TO] = -1


@inlined
def put_frame(frames, desk):
    """Move the frame that egress wrote last into its block, also as late as possible."""
    target = desk.marks[FRAME_TO]
    if target >= 0:
        for word in range(frames.kept >> 3):
            frames.words[at(target + word)] = desk.out[at(word)]

        desk.marks[FRAME_TO] = -1


@inlined
def depart(world, frames, program, desk, switch, port, now_ps, clock_ps):
    """Let the packet leave that has left a port whole at `now_ps`; programs see `clock_ps`."""
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    if program.passes != 0:
        leave_at_once(world, frames, program, desk, switch, port, now_ps, clock_ps)
        let_go(world, world.links[at(number)], level_at(node, port))
        return

    leaving = world.links[at(first_way(world, number))]
    slot = np.int64(leaving.cursor)
    if egress_of(world, frames, program, desk, switch, port, slot, now_ps, clock_ps):
        note_leave(world, frames, desk, switch, port, slot, now_ps)

    let_go(world, leaving, level_at(node, port))


@inlined
def egress_of(world, frames, program, desk, switch, port, slot, now_ps, clock_ps):
    """Run egress for a packet that leaves a port; return whether it has a frame, or is lost."""
    number = np.int64(world.switches[at(switch)].first_port) + port
    link = world.links[at(number)]
    packet = world.pool.packets[at(slot)]
    has_overtaken = is_urgent(int(packet.status))
    link.depth -= 0 if has_overtaken else 1

    first = block(frames, slot)
    memory = frames.words
    here = first >> 3
    if desk.marks[STATE_TO] == here + (frames.state_at >> 3):
        put_state(frames, desk)

    put_frame(frames, desk)
    length = length_of(frames, slot)
    queued = here + (frames.kept >> 3)
    urgency = memory[at(here + (frames.state_at >> 3) + 1)]
    queued_ps = memory[at(queued + QUEUED_AT)]
    behind = memory[at(queued + QUEUED_BEHIND)]
    if has_overtaken:
        forget(program, switch, port, -(behind >> 32))

    grown = call(
        program.egress,
        program.contexts[at(switch)],
        frames.address + first,
        shown(frames, length),
        length,
        frames.address + first + frames.state_at,
        port + 1,
        urgency & LOW_32,
        bytes_of(world, packet, HOST_LEVEL) + (urgency >> 32),
        0,
        0,
        clock_ps,
        queued_ps // PS_PER_US,
        behind & LOW_32,
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

        return False

    was_marked = is_marked_at(frames.octets, ip_of(world, frames, first))
    left_at = frames.ip_at + more_bytes(world, level_at(world.switches[at(switch)], port))
    if not was_marked and is_marked_at(desk.out_octets, left_at):
        world.ledgers[at(number)].marked += 1

    take_over(frames, desk, slot, length, grown)
    return True


@inlined
def note_leave(world, frames, desk, switch, port, slot, now_ps):
    """Log that a packet leaves a port (from 0)."""
    packet = world.pool.packets[at(slot)]
    note(frames, desk, now_ps, LEAVE_KIND, switch, port + 1, slot, packet)


@inlined
def leave_at_once(world, frames, program, desk, switch, port, now_ps, clock_ps):
    """Run the rest of a program for a packet with a frame that is ready since its arrival."""
    number = np.int64(world.switches[at(switch)].first_port) + port
    link = world.links[at(number)]
    link.depth -= 1
    slot = np.int64(link.cursor)
    if program.leaves != 0:
        call(
            program.leaves,
            program.contexts[at(switch)],
            frames.late_address + 8 * frames.late_words * slot,
            port + 1,
            clock_ps,
            link.depth,
        )

    note_leave(world, frames, desk, switch, port, slot, now_ps)


@inlined
def take_over(frames, desk, slot, length, grown):
    """Put a frame that a program has written into its block; zeros follow where it has shrunk."""
    first = block(frames, slot)
    desk.marks[FRAME_TO] = first >> 3
    if grown != length or len(desk.log) > 0:
        put_frame(frames, desk)

    set_length(frames, slot, grown, dirty=DIRTY)
    if grown != length:
        written = min(shown(frames, length) + grown - length, frames.kept)
        for byte in range(written, frames.kept):
            frames.octets[at(first + byte)] = 0
