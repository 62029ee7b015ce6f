"""What a host remembers: one record per sending flow, one per packet of it, one per receiving flow.

The rules in `labels` and `transport` read and write attributes only, so they run on these records inside numba kernels and on
`blank` objects in plain Python.
"""

from enum import IntEnum
from types import SimpleNamespace

import numpy as np

NEVER = 2**62
RING = 8
PSN_WINDOW = 1024


class Recovery(IntEnum):
    """How losses are repaired."""

    ERASURE = 0
    SACK = 1


class Congestion(IntEnum):
    """What sets the rate."""

    FIXED = 0
    MSWIFT = 1


# What holds for all flows of a run. Times in ps; `seed` is the scenario's.
RULES = np.dtype(
    [
        ("seed", np.int64),
        ("recovery", np.int64),
        ("congestion", np.int64),
        ("label_rule", np.int64),
        ("zero_load_rtt_ps", np.int64),
        ("bdp_packets", np.int64),
        ("sack_threshold", np.int64),
        ("jitter_permille", np.int64),
        ("freeze_ps", np.int64),
        ("plb_acks", np.int64),
        ("plb_percent", np.int64),
        ("plb_gaps", np.int64),
    ],
    align=True,
)

# One sending flow. Packet numbers (PSN) count from 0; `resume_ps` is NEVER unless the flow pauses, `done_ps` until it is done.
SENDER = np.dtype(
    [
        ("flow", np.int64),
        ("packets", np.int64),
        ("gap_ps", np.int64),
        ("due_ps", np.int64),
        ("resume_ps", np.int64),
        ("done_ps", np.int64),
        ("sent", np.int64),
        ("transmissions", np.int64),
        ("acked", np.int64),
        ("highest", np.int64),
        ("lost", np.int64),
        ("lowest", np.int64),
        ("srtt_ps", np.int64),
        ("rttvar_ps", np.int64),
        ("backoff", np.int64),
        ("round_next", np.int64),
        ("round_end", np.int64),
        ("round_before_ps", np.int64),
        ("recover", np.int64),
        ("draws", np.int64),
        ("label", np.int64),
        ("oldest", np.int64),
        ("ring", np.int64, (RING,)),
        ("ring_valid", np.int64, (RING,)),
        ("head", np.int64),
        ("fresh", np.int64),
        ("explore", np.int64),
        ("frozen_head", np.int64),
        ("frozen_until_ps", np.int64),
        ("freezes", np.int64),
        ("history", np.int64),
        ("acks_seen", np.int64),
        ("good_ps", np.int64),
        ("changed_ps", np.int64),
        ("patience_ps", np.int64),
    ],
    align=True,
)

# One packet number of a sending flow, in a ring of `len(packets)` (a power of two): entry psn & (len - 1).
PACKET = np.dtype([("sent_ps", np.int64), ("label", np.int32), ("state", np.int32)], align=True)


class PacketState(IntEnum):
    """What the sender knows of a packet number."""

    OUT = 0
    RESENT = 1
    ACKED = 2


def blank(dtype: np.dtype[np.void]) -> SimpleNamespace:
    """Return a plain object with the fields of a record, all zero: the same rules, without numpy's cost a field."""
    fields = dtype.fields or {}
    return SimpleNamespace(**{name: [0] * int(np.prod(kind[0].shape)) if kind[0].shape else 0 for name, kind in fields.items()})
