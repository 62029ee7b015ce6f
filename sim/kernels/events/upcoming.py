"""The next event of each port of a switch in a window: a tournament, its winner on top.

An entry is the time within the window, above the kind of the event, above the port, so that equal
times are in the order of kinds, then of ports. Leaves are ports; a port without an event has FAR.
Without pauses, a port's one event is the departure of its first packet, which is foreseen
(`sim.kernels.ports`). With pauses it has a gate, and the gate's fields define its next event.
"""

import numpy as np

from sim.kernels.jit import at, inlined
from sim.kernels.ports import FAR, next_departure
from sim.kernels.switches import PORT_BITS, level_at

# A port's record beside its link if links may be paused, two cache lines. The packet of slot `sent`
# leaves at `leaves_ps` (FAR: nothing is being sent): `bytes` that have come in by `came_by`, NOBODY
# for a control frame; it will not arrive where the port `is_losing` it. `state` is whether the
# port is paused: since `closed_ps`, until `until_ps` at most; it was last until `opened_ps`. Its
# host's storm begins at `storm_ps`. A control frame waits here where one `is_owed`, and `is_told`:
# 1 for a pause, 0 for its end, which is decided at `tells_ps`. So many packets and control frames
# have `begun` and been `framed`. The buffer of arrivals by the port's link holds `held` bytes, of
# which `over` are in its headroom where memory is shared (0 elsewhere), and `is_pausing` its link,
# a pause that is sent again at `renew_ps`. A host at the far end is paused from `since_ps` until
# `far_until_ps` at most.
GATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("leaves_ps", "opened_ps", "held", "over", "renew_ps", "closed_ps", "until_ps"),
            *("storm_ps", "since_ps", "far_until_ps", "begun", "framed", "tells_ps"),
        )
    ]
    + [
        (name, np.int32)
        for name in ("bytes", "came_by", "state", "is_pausing", "is_owed", "is_told", "is_losing")
    ]
    + [("sent", np.int32)],
    align=True,
)
NOBODY = -1
# Whether a port is paused; TRIPPED: paused for so long that the watchdog has acted.
OPEN, CLOSED, TRIPPED = range(3)

# The ports' own events at an instant, in this order; then packets arrive, and last pauses are
# heeded.
LEAVES, BEGINS, TELLS, RENEWS, TURNS, TRIPS = range(6)
KIND_MASK = 7
EVENT_BITS = PORT_BITS + 3
# Where the winner is.
TOP = 1
# The time within a window of an event outside it.
NOTHING = FAR >> EVENT_BITS
# Queues are sampled when packets have left, before anything else happens.
SAMPLES = BEGINS << PORT_BITS


@inlined
def fill(world, gates, tree, node, window):
    """Put the first event of each port within a window into the tree."""
    leaves = len(tree) >> 1
    for port in range(leaves):
        tree[at(leaves + port)] = FAR

    for port in range(np.int64(node.ports)):
        tree[at(leaves + port)] = entry_of(world, gates, node, port, window)

    for index in range(leaves - 1, 0, -1):
        tree[at(index)] = min(tree[at(2 * index)], tree[at(2 * index + 1)])


@inlined
def update(world, gates, tree, node, port, window):
    """Set a port's entry to its next event."""
    put(tree, port, entry_of(world, gates, node, port, window))


@inlined
def put(tree, port, least):
    """Set a port's entry, and update the minima above it."""
    # A branch that compares times is right half of the time: this has none.
    index = (len(tree) >> 1) + port
    tree[at(index)] = least
    while index > TOP:
        least = min(least, tree[at(index ^ 1)])
        index >>= 1
        tree[at(index)] = least


@inlined
def entry_of(world, gates, node, port, window):
    """Return the entry of a port's (from 0) first event within a window, FAR without an event."""
    if gates is None:
        return entry(LEAVES, port, next_of_port(world, gates, node, port), window)

    number = np.int64(node.first_port) + port
    gate = gates[at(number)]
    kind = BEGINS if gate.leaves_ps == FAR else LEAVES
    first = min(
        entry(kind, port, moves_ps(world, gate, number), window),
        entry(TELLS, port, gate.tells_ps, window),
    )
    first = min(first, entry(RENEWS, port, gate.renew_ps, window))
    first = min(first, entry(TURNS, port, turns_ps(gate), window))
    return min(first, entry(TRIPS, port, trips_ps(world, gate, number), window))


@inlined
def entry(kind, port, time_ps, window):
    """Return the entry of an event, FAR for an event outside the window."""
    start_ps, end_ps = window
    event = (kind << PORT_BITS) | port
    return ((time_ps - start_ps) << EVENT_BITS) | event if time_ps < end_ps else FAR


@inlined
def next_of_port(world, gates, node, port):
    """Return the time of a port's (from 0) own next event, FAR if it waits for other nodes."""
    number = np.int64(node.first_port) + port
    if gates is None:
        return next_departure(world, number, level_at(node, port))

    gate = gates[at(number)]
    moves = moves_ps(world, gate, number)
    return min(moves, gate.tells_ps, gate.renew_ps, turns_ps(gate), trips_ps(world, gate, number))


@inlined
def next_of_switch(world, gates, switch):
    """Return when a switch's ports next do something by themselves, FAR if they never will."""
    node = world.switches[at(switch)]
    next_ps = np.int64(FAR)
    for port in range(np.int64(node.ports)):
        next_ps = min(next_ps, next_of_port(world, gates, node, port))

    return next_ps


@inlined
def own_events(world, switch):
    """Return the index of a switch's own events in `World.wakes_ps`."""
    return at(world.constants.ports + world.constants.hosts + switch)


@inlined
def moves_ps(world, gate, number):
    """Return when a port's last bit is out or its next packet begins, FAR where none can."""
    if gate.leaves_ps != FAR:
        return gate.leaves_ps

    link = world.links[at(number)]
    is_ready = gate.is_owed != 0 or (gate.state != CLOSED and link.cursor != link.tail)
    return link.free_ps if is_ready else np.int64(FAR)


@inlined
def turns_ps(gate):
    """Return when a port's pause ends or its host's storm begins, FAR if neither will."""
    return gate.storm_ps if gate.state == OPEN else gate.until_ps


@inlined
def trips_ps(world, gate, number):
    """Return when the watchdog takes a port's pause for a storm, FAR without a pause."""
    if gate.state != CLOSED:
        return np.int64(FAR)

    return min(np.int64(FAR), gate.closed_ps + world.rooms[at(number)].patience_ps)
