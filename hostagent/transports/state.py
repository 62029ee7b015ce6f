"""The memory of a host: records of sending flows and of their packets, and the rules for all.

The rules in `labels` and `transport` read and write attributes only, so they run on these records
inside numba kernels and on `blank` objects in plain Python.
"""

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fattree.counters import SENDER_COUNTERS

# Later than any time, and a time may be added to it without leaving int64.
NEVER = 2**62

# REPS's ring of labels, as published.
RING = 8

# How many path labels a flow of UET Bitmap takes in turn (a power of two), a label's most penalty,
# and the penalty of a trimmed packet: the defaults of Ultra Ethernet's simulator.
PATHS = 64
MOST_PENALTY = 15
TRIMMED_PENALTY = 4

# How many entropy values a connection of MRC has at least (a power of two; published: 128 to 256).
ENTROPY_VALUES = 128

# The most packet numbers between a hole and the newest packet: as many as an ACK's bitmap has bits.
PSN_WINDOW = 1024


class Recovery(IntEnum):
    """Ways to repair losses."""

    ERASURE = 0
    SACK = 1
    GO_BACK_N = 2


class Congestion(IntEnum):
    """Controls of a flow's rate."""

    FIXED = 0
    SWIFT = 1
    LAZY_SWIFT = 2
    MSWIFT = 3
    NSCC = 4
    DCQCN = 5


class PacketState(IntFlag):
    """The sender's knowledge of a packet number."""

    OUT = 0
    RESENT = 1
    ACKED = 2
    # A NACK has reported that a switch cut it, and it has not been sent again.
    TRIMMED = 4
    # Sent again after a NACK: the fate of every earlier copy is known.
    AGAIN = 8


class Rules(NamedTuple):
    """The rules for all flows of a run.

    Times in ps: `timer_floor_ps` at least, `target_ps` Swift's delay over the longest path, which
    has `longest_path` links, or NSCC's in queues. Go-back-N's receivers keep `reorder_packets`
    beyond the next in order, and a gap is late from an age of `reorder_ps` on. Swift's window is
    cut at the `late_holes`th late hole in a row, by the median of `most_delays` delays at most.
    `bdp_scale` is NSCC's, times 2**16. With `trimming` switches cut packets in place of dropping
    them, and with `acks_first` ACKs go before data there. With `awaits_acks` flows that wait for a
    flow at its source wait for its ACKs, else until all its packets have been sent once.
    Receivers acknowledge every `packets_per_ack`th packet, and with `tells_share` each ACK has the
    number of flows that share their link. DCQCN's counter of bytes counts `counter_packets`.
    A flow of MRC has `entropy_values`.
    """

    seed: int
    recovery: int
    congestion: int
    label_rule: int
    zero_load_rtt_ps: int
    longest_path: int
    explore_packets: int
    sack_threshold: int
    jitter_permille: int
    freeze_ps: int
    reorder_packets: int
    reorder_ps: int
    timer_floor_ps: int
    plb_acks: int
    plb_percent: int
    plb_gaps: int
    target_ps: int
    late_holes: int
    most_delays: int
    bdp_scale: int
    trimming: int
    acks_first: int
    awaits_acks: int
    packets_per_ack: int
    tells_share: int
    counter_packets: int
    entropy_values: int


# One sending flow. Packet numbers (PSN) count from 0; `pace_ps` is the least time between its
# packets, its gap times the receiver's `share` of flows, 0 for a flow `in_turn`: its packets are
# all due `since_ps`, as the first was. `left_ps` is when the last packet left. `stop_ps` is when
# an erasure sender stops first, NEVER before; `highest` is the largest number of which an ACK (with
# erasure codes also a NACK) has come, -1 before; `first_ps` and `done_ps` are NEVER until its first
# packet leaves, until it is done; `base_ps` is its path's zero-load RTT, before `patient_ps` late
# holes wait; `window` is in packets times 2**16, as is NSCC's `owed` growth (packets squared).
# `trimmed` counts packets that NACKs have reported and that SACK is to send again, from
# `first_trimmed` on; `heard_ps` is when the last ACK or NACK came. Packets of a round have
# timed out (`round_is_timeout`), or were late. DCQCN's `rate` moves to its `target_rate`, which a
# timer (`ticks`) and the packets since transmission `cut_at` let grow; `alpha_ps`, `timer_ps`:
# when alpha and the timer last moved. `unheard_ps` is when a flowlet's first packet since the last
# ACK or NACK left, NEVER before it. MRC's `retired` values, its `credit` of packets for probes,
# whether a probe has come back since a flow was held, and whether this flow is (`labels.held_ps`).
SENDER = np.dtype(
    [
        (name, np.int64)
        for name in (
            *(
                "flow",
                "packets",
                "gap_ps",
                "pace_ps",
                "share",
                "in_turn",
                "since_ps",
                "left_ps",
                "due_ps",
                "stop_ps",
                "first_ps",
                "done_ps",
                "sent",
                *SENDER_COUNTERS,
            ),
            *("acked", "highest", "srtt_ps", "rttvar_ps", "label", "draws"),
            *("lowest", "backoff", "round_next", "round_end", "round_before_ps", "round_skips"),
            "round_is_timeout",
            *("recover", "trimmed", "first_trimmed", "heard_ps"),
            *("base_ps", "patient_ps"),
            *(
                "target_ps",
                "window",
                "counted",
                "samples",
                "median_ns",
                "decreased_ps",
                "late_holes",
            ),
            *("mean_delay_ps", "owed", "adjusted_ps", "adjusted_acked", "clear", "is_clear"),
            *("quick_ps", "quick_acked", "ignored_below", "is_trimmed"),
            *("rate", "target_rate", "alpha", "alpha_ps", "timer_ps", "ticks", "cut_at"),
            *("oldest", "head", "fresh", "explore", "frozen_head", "frozen_until_ps"),
            *("history", "acks_seen", "good_ps", "changed_ps", "patience_ps"),
            "unheard_ps",
            *("turn", "turn_xor", "retired", "credit", "has_echo", "is_held"),
        )
    ]
    + [("ring", np.int64, (RING,)), ("ring_valid", np.int64, (RING,))]
    + [("penalties", np.uint8, (PATHS,))]
    # Of MRC's values.
    + [("path_states", np.uint8, (ENTROPY_VALUES,))],
    align=True,
)

# A receiving flow of go-back-N: whether it has asked for the missing packet; the number of packets
# kept behind it, since when (`gap_ps`), and whether any of these is marked, or asks for an ACK.
RECEIVER = np.dtype(
    [(name, np.int64) for name in ("has_asked", "kept", "gap_ps", "is_marked", "asks")],
    align=True,
)

# A packet has timed out, and MRC has retired its value.
COUNTED = 255

# One packet number of a sending flow, in a ring of `len(packets)` (a power of two): entry psn &
# (len - 1). `doubted` is 1 more than the MRC value of its first copy, if the second left because
# the first was late, or COUNTED, else 0. `delay_ns` belongs to the ring of delay samples instead,
# which shares the memory.
PACKET = np.dtype(
    [
        *(("sent_ps", np.int64), ("delay_ns", np.int32), ("label", np.uint16)),
        *(("state", np.uint8), ("doubted", np.uint8)),
    ],
    align=True,
)


def blank(dtype: np.dtype[np.void]) -> SimpleNamespace:
    """Return a plain object with a record's fields, all zero.

    In plain Python a field of a numpy record costs many times as much as an attribute.
    """
    fields: Mapping[str, Any] = dtype.fields or {}
    return SimpleNamespace(
        **{
            name: [0] * int(np.prod(kind[0].shape)) if kind[0].shape else 0
            for name, kind in fields.items()
        }
    )
