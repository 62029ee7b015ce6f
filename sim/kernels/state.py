"""The simulator's state: arrays of records, grouped in tuples that the kernels read: only numbers.

A directed link is an output port's queue and its wire. Its packets lie in one list, in the order in
which they leave, made of chunks of one shared pool: `taken` is the first packet that the far node
has not taken, `cursor` the first whose last bit had not left when the port last looked, `tail` the
next free slot. A chunk is spare again when `taken` and `cursor` have both passed it. Times are in
ps from the start of the run, sizes in bytes of whole packets without gaps.

    link = first_port[switch] + port - 1 | ports + host | lane of a port: lanes + link

Where switches trim, every link has a second list, its lane, for packets that ports have cut and for
NACKs: they overtake all packets that are not being sent yet, which leave later by that
(`sim.kernels.ports.give_way`). Where they pause, the lane is for pauses and resumes, and `cursor`
is the first packet whose transmission has not begun (`sim.kernels.events.gates`).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.kernels.bundles import by_address
from sim.kernels.records import Records

# A packet's status: its class, which is also an index (of pointers, of starts), and its history.
DATA = 0
ACK = 1
MARKED = 2
LOST = 4
# Data that a switch has cut to their headers, and their ACK, a NACK.
TRIMMED = 8
# Data that ask for an ACK at once; an ACK that goes before data.
ASKS = 16
# A packet that a pause has held at its last port.
HELD = 32
# The last packet of a message, if that has less left than other packets carry.
SHORT = 64
# A packet of an edge's own, for another edge: it has the size of an ACK.
PROBE = 128
# Packets that have the size of an ACK.
SMALL = ACK | TRIMMED
FIRST_ACK = ACK | ASKS
# A `route_agg` where Host DR has no waypoint; no switch has so many uplinks.
NOWHERE = 255

# Counters of a run: the height of the stack of spare chunks; packets that are neither delivered nor
# dropped, waiting ACKs included; flows that are not done; when the last one was; packets without a
# path; the time up to which everything has been served. Of programs alone (`sim.kernels.events`):
# packets that switches have taken in, that hosts have received, that hosts could not take for their
# own, requests of programs that are not served here, the packets that they have sent to ports that
# do not exist (UNROUTABLE counts them, too), with the highest of these ports, 0 for none; and the
# probes that edges have sent, and those that have ended at edges.
(
    SPARE,
    LIVE,
    UNFINISHED,
    LAST_DONE,
    UNROUTABLE,
    CLOCK,
    HOPS,
    RECEIVED,
    MISDELIVERED,
    UNSERVED,
    MISDIRECTED,
    HIGHEST_PORT,
    PROBES_SENT,
    PROBES_TAKEN,
) = range(14)
COUNTERS = 14

# Where the spare chunks of a ring are (`Pool`).
FIRST, BEHIND = range(2)


NO_SENDER = -1

Bytes = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@by_address
class Buffers(NamedTuple):
    """A thread's room for a node's keys: unsorted, sorted, by bucket, and where each port ends."""

    keys: Int64
    sorted_keys: Int64
    buckets: Int32
    ends: Int64


class Constants(NamedTuple):
    """Numbers of a run. Times in ps, sizes in bytes; `capacity` 0 is unlimited.

    A data packet holds a host's link for `least_slot_ps` at least. A `threshold` is the least queue
    of its bin. `is_shared`: whether Simple RR's classes share a pointer, `is_lossy` whether any
    link loses packets at random, `is_slowed` whether any is ever slow, `is_pausing` whether
    switches pause links. `alpha` is that of shared memory, times 2**16, and 0 without it. The lane
    of link 0 is `lanes`, 0 where nothing is trimmed or paused. `machines` have a host in each of
    the `planes`: m, m + machines, ... `is_drawing`: whether packets leave by other hosts of a
    machine while a port is down; parts of a message in neighbouring planes are `subflows` apart.
    `ecn_*` are a `fattree.experiment.marking.Marking`.
    """

    hosts_per_edge: int
    edges_per_pod: int
    pods_per_plane: int
    edge_uplinks: int
    agg_uplinks: int
    edge_agg_links: int
    agg_core_links: int
    first_agg: int
    first_core: int
    edge_ports: int
    agg_ports: int
    ports: int
    lanes: int
    switches: int
    hosts: int
    machines: int
    planes: int
    window_ps: int
    data_bytes: int
    ack_bytes: int
    least_slot_ps: int
    capacity: int
    alpha: int
    ecn_bytes: int
    ecn_full_bytes: int
    ecn_slope: int
    threshold_1: int
    threshold_2: int
    threshold_3: int
    chooser: int
    seed: int
    is_sack: int
    is_stale: int
    is_shared: int
    is_lossy: int
    is_slowed: int
    is_pausing: int
    is_drawing: int
    subflows: int


class Pool(NamedTuple):
    """Packets (chunks * CHUNK,), the headers of chunks, and the stack of spare chunks.

    `headers` is a view of the memory of `packets`, at the first slot of each chunk. `starts` has
    when each packet's transmission starts, and is empty if unused: a departure implies it, unless
    links change their rate and have lanes. With a `ring`, which has numbers that only grow, `spare`
    is no stack: entries from FIRST on, before BEHIND, modulo its length (`sim.gpu`).
    """

    packets: Records
    headers: Records
    spare: Int32
    starts: Int64
    ring: Int64 | None = None


@by_address
class Routes(NamedTuple):
    """`fattree.routes.forwarding` of one state of the links, flat.

    A switch's destinations start at its `row` of `groups`, which has local groups (-1: no path).
    Their records are in `group_table`, each switch's from `first_group` on; `weights` are by
    schedule.
    """

    # Parallel links down (`routes.southbound`): at aggs, a row for each edge below; at cores, for
    # each pod. Groups are local to a switch: a pointer belongs to (switch, local group),
    # whatever the routes are.
    groups: Int32
    first_group: Int64
    group_table: Records
    slots: Bytes
    weights: Bytes
    waypoint_row: Int32
    waypoint_start: Int32
    waypoint_offset: Int64
    waypoints: Bytes
    agg_members: Bytes
    agg_counts: Int32
    core_members: Bytes
    core_counts: Int32


class Pointers(NamedTuple):
    """The registers of switches and Host DR's hosts: cells as in P4 (0: unused).

    `cells`: (data, ACK) of each group; `orders`, `wraps`: the order that a RESHUFFLED pointer
    walks, and its wraparounds since it was drawn; `host_cells` (pairs, 2).
    """

    cells: Int32
    orders: Bytes
    wraps: Bytes
    host_cells: Int32


class Flows(NamedTuple):
    """Per flow: constants, sender, when it is ready, its place in its heap, and counts.

    `sender_of` is the number of a flow's record of `senders` from its begin to its end, before and
    afterwards NO_SENDER; `ended` has its results then. Each host has room
    in `spare_senders`, as in the heap, and there `spares` numbers that no flow has. Where flows
    share connections these are empty, and a flow keeps the record of its own number.
    `received` and `reported` count packets at the receiver and in ACKs that came back, `waiting`
    those that no ACK has reported yet, `blocked` the flows that it waits for; `followers` (CSR) are
    those that wait for it. Of go-back-N's `receivers` each has a row of `kept`
    (`transports.go_back_n`), both empty without it. `told` is the share that the receiver of each
    pair of hosts has sent, at `told_ps` (NEVER: not yet), both empty if receivers send none.
    `outstanding` holds all rings, `arrivals` the packet numbers that SACK's receivers have got, in
    order of arrival. `heap_of` has the record of `World.hosts` that has a flow in its heap, where
    that changes.
    """

    table: Records
    senders: Records
    sender_of: Int32
    spare_senders: Int32
    spares: Int32
    ended: Records
    outstanding: Records
    ready_ps: Int64
    place: Int32
    received: Int32
    reported: Int32
    waiting: Int32
    receivers: Records
    kept: Bytes
    blocked: Int32
    follower_offset: Int64
    followers: Int64
    started_ps: Int64
    arrivals: Int32
    is_received: Bytes
    told: Int32
    told_ps: Int64
    heap_of: Int32


class OwnRule(NamedTuple):
    """A host rule of the user's: two C functions, and the addresses of their records.

    Addresses are 0 without one. `memory` is the rules and all flows' states, `state_bytes` each.
    """

    next_label: int
    on_ack: int
    states_at: int
    state_bytes: int
    senders_at: int
    packets_at: int
    rules_at: int
    memory: Bytes


@by_address
class World(NamedTuple):
    """The whole state of a run, and its constants.

    `wakes_ps` is when the first packet arrives on the link into each port, or earlier; behind
    ports, when each host's next event happens, then each switch's next that no packet brings.
    `outages_of` has the first row of each host's outages, and the row behind them. `paces` has
    rows of (until, control frame, with its gap, data, with its gap, ACK, ...), `nics` a
    row for each size, `gates` and `rooms` one for each port, where anything is paused. `features`
    is None if the run has no feature that plain kernels leave out (`sim.kernels.plain`).
    """

    # One tuple, so that kernels have one argument.
    constants: Constants
    rules: Any
    own: OwnRule
    pool: Pool
    links: Records
    ledgers: Records
    passages: Records
    nics: Records
    inputs: Int32
    wakes_ps: Int64
    outages: Int64
    outages_of: Int64
    paces: Int64
    gates: Records
    rooms: Records
    switches: Records
    hosts: Records
    heap: Int32
    timers: Int32
    flows: Flows
    pointers: Pointers
    hash_low: NDArray[np.uint32]
    hash_high: NDArray[np.uint32]
    counters: Int64
    features: int | None
