"""The records of the simulator's state: packets, links, ports, switches, hosts and flows.

Times are in ps from the start of the run, sizes in bytes of whole packets without gaps.
"""

from typing import Any

import numpy as np

from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS

# Slots of a chunk, the first of which is its header. Long chunks waste memory on the many links
# that hold few packets, short ones are followed more often; a power of two makes headers easy to
# find from a slot.
CHUNK_BITS = 4
CHUNK = 1 << CHUNK_BITS

# A packet on a link: when its last bit arrives at the far end, its flow, and its destination (as in
# 10.pod.edge.index). `route` is Host DR's waypoint (agg position, core index), `hash` the ECMP
# hash, `log` how many packets of the flow an ACK reports. 32 bytes: two share a cache line.
TRANSIT = np.dtype(
    [
        ("time_ps", np.int64),
        ("flow", np.int32),
        ("psn", np.int32),
        ("pod", np.uint8),
        ("edge", np.uint8),
        ("index", np.uint8),
        ("status", np.uint8),
        ("label", np.uint16),
        ("route_agg", np.uint8),
        ("route_core", np.uint8),
        ("hash", np.uint32),
        ("log", np.int32),
    ],
    align=True,
)

# The same for packets with bytes: `held` has their block (`sim.kernels.blocks`).
FRAMED = np.dtype([*TRANSIT.descr, ("held", np.int64)])


def header_of(record: np.dtype[np.void]) -> np.dtype[np.void]:
    """Return the header of a chunk of such records.

    The first slot of a chunk has the next chunk of its list, and how many of its two readers have
    passed it: the far node, and the port itself.
    """
    return np.dtype(
        {
            "names": ["next", "passes"],
            "formats": [np.int32, np.int32],
            "itemsize": CHUNK * record.itemsize,
        }
    )


# A directed link, a cache line long. Its wire is taken until `free_ps`; `occupancy` counts bytes
# that wait or are being sent, as of the last settling, so never too few; `byte_ps` the integral of
# the queue; its next outage begins at `down_ps`; `depth` the packets in it, where a program asks.
# Slots have 32 bits: 64 GiB of packets.
LINK = np.dtype(
    [(name, np.int64) for name in ("free_ps", "occupancy", "down_ps", "max_bytes", "byte_ps")]
    + [
        (name, np.int32)
        for name in ("taken", "tail", "cursor", "data_packets", "ack_packets", "depth")
    ],
    align=True,
)

# A link's rarely needed fields, apart from it so that a link fits into a line: a port's counters
# (`fattree.counters`), a host's link its losses alone; the bytes that short packets have less than
# full ones; the occupancy that adaptive schemes with stale queues see; its next outage is row
# `outage` and ends at `up_ps`; `unlucky`: of 2**32 draws for packets, so many lose theirs; where
# links are slow, its rate is row `pace` of `World.paces`.
LEDGER = np.dtype(
    [
        (name, np.int64)
        for name in (
            *PORT_COUNTERS,
            *("short_bytes", "stale_bytes", "outage", "up_ps", "unlucky", "pace"),
        )
    ],
    align=True,
)

# How a packet passes a link, by its size and the link's level (`sim.kernels.ports.passage`): its
# bytes, how long it is being sent and holds the link, with the gap behind it, and the latency.
# Sizes are numbered: full data packets (DATA), ACKs (ACK), then messages' last packets. One row for
# all, so that nothing branches on the class: data and ACKs alternate as no processor predicts.
PASSAGE = np.dtype(
    [(name, np.int64) for name in ("bytes", "sending_ps", "slot_ps", "latency_ps")], align=True
)

# How long a packet of a size keeps a NIC, and a data packet the next one (`nics.Nic`).
NIC = np.dtype([(name, np.int64) for name in ("kept_ps", "between_ps")], align=True)

# A group of destinations at a switch: its schedule is number `schedule`, which has `length` entries
# of `slots` from `first` on, and a pointer of each class starts at a slot of it.
GROUP = np.dtype(
    [("first", np.int64)]
    + [(name, np.int32) for name in ("length", "schedule", "start_data", "start_ack")],
    align=True,
)

# `first_port`: the link that is its port 1; `ports`: how many it has, of which the first `south`
# lead down. `level`: which destinations the columns of `groups` are, from `row` on: 0 pods,
# 1 edges, 2 hosts.
# `cells`: its first pointer; `multiplier`: its odd factor of ECMP hashes (decision 12); `draws`:
# how many random numbers it has taken from its stream.
SWITCH = np.dtype(
    [(name, np.int64) for name in ("row", "cells", "multiplier", "draws")]
    + [
        (name, np.int32)
        for name in ("first_port", "ports", "south", "tier", "pod", "position", "level")
    ],
    align=True,
)

# A host, or behind all hosts a machine with flows that have no plane ready (`sim.kernels.planes`):
# of its record only the heap is used, `free_ps` for its last event, and `towards` for the last
# plane of moved packets. A host's link is taken until `free_ps`, its first flow is ready
# at `ready_ps` (NEVER without a flow); `acks` ACKs wait in a list like a link's; `heap_first`,
# `heap_size`: its started flows, a binary heap by (ready, flow). `last_was_ack` decides the turn
# while data and ACKs wait. Its computations are another heap of that kind, `timer_first`,
# `timer_size`; the first ends at `timer_ps` (NEVER without a computation). Data may leave from
# `data_free_ps` on; `towards` is the link to it, and `arriving` flows share it: a part of them has
# arrived, and not all. A host is paused from `closed_ps` until `until_ps` at most (0: it is not).
HOST = np.dtype(
    [
        (name, np.int64)
        for name in (
            "free_ps",
            "ready_ps",
            "last_was_ack",
            "acks",
            "taken",
            "tail",
            "heap_first",
            "heap_size",
            "timer_ps",
            "timer_first",
            "timer_size",
            "data_free_ps",
            "towards",
            "arriving",
            "closed_ps",
            "until_ps",
        )
    ],
    align=True,
)

# The constant fields of a flow; the others are in `hostagent.transports.state.SENDER`. `hops`:
# links of its path; `hash_*`: ECMP's with label 0; `pair`: its row of Host DR's pointers; `gap_ps`:
# from one packet's start to the next one's; `phase_ps`: from its own start to the first;
# `compute_ps`: how long it takes where it is a computation, without packets; `in_turn`: whether it
# leaves as a whole, before flows that begin later. `last_size` is the number of its last packet's
# size (PASSAGE), `last_class` the class that switches take it for, by its length. The sender of
# flow `connection` has the state of its label rule. `ring` and `ring_length` place its entries of
# `outstanding`, `log` those of `arrivals`.
FLOW = np.dtype(
    [
        ("source", np.int32),
        ("destination", np.int32),
        ("source_pod", np.uint8),
        ("source_edge", np.uint8),
        ("source_index", np.uint8),
        ("pod", np.uint8),
        ("edge", np.uint8),
        ("index", np.uint8),
        ("hops", np.uint8),
        ("last_class", np.uint8),
        ("hash_data", np.uint32),
        ("hash_ack", np.uint32),
        ("packets", np.int32),
        ("pair", np.int32),
        ("gap_ps", np.int64),
        ("phase_ps", np.int64),
        ("compute_ps", np.int64),
        ("in_turn", np.int32),
        ("last_size", np.int32),
        ("connection", np.int64),
        ("ring", np.int64),
        ("ring_length", np.int64),
        ("log", np.int64),
    ],
    align=True,
)

# The results of a flow that has ended. A computation has no sender.
ENDED = np.dtype(
    [(name, np.int64) for name in ("first_ps", "done_ps", *SENDER_COUNTERS)], align=True
)

Records = np.recarray[Any, Any]


def records(count: int, dtype: np.dtype[np.void]) -> Records:
    """Return zeroed records with fields as attributes, inside kernels and out."""
    return np.zeros(count, dtype).view(np.recarray)
