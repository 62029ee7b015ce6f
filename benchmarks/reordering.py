"""The needs of NICs that put packets in order: the runs behind a table of docs/lossless.md.

python -m benchmarks.tables reordering
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from statistics import mean, stdev
from typing import Any

from fattree.policies import POLICIES
from fattree.records.record import Record
from reproduction.report.figure import grid
from reproduction.report.schemes import PERMUTATION
from sim.sweeps.sweeping import simulate

BALANCERS = ("flow", "host_flowlet_ar", "switch_pkt_ar", "simple_rr", "ofan", "host_dr")
# Sizes of NICs' reorder buffers, in packets, and the largest size.
ROOMS = (0, 32, 128, 512)
MOST = 1023
SEEDS = range(1, 6)
COLUMNS = (
    "load balancer",
    "out of order",
    *(f"{buffer_packets} packets" for buffer_packets in ROOMS),
)
# Nothing is lost, and no timer ends: a sender goes back only for packets too far out of order.
PATIENT = {
    "fabric__queue_bytes": 0,
    "transport__timer_floor_rtt": 1000,
    "transport__reorder_timeout_rtt": 1000,
}


def reordered(policy: str) -> Sequence[str]:
    """Return a load balancer's row: how far packets overtake each other, then a cell for each room.

    A cell has the CCT over the bound, and how often senders went back.
    """
    return (
        POLICIES[policy].label,
        f"{farthest(policy)}",
        *(kept(policy, packets) for packets in ROOMS),
    )


def farthest(policy: str) -> int:
    """Return how many packets a NIC needs room for so that no flow of any seed goes back."""

    # Before the first packet is refused a run is the same whatever the room: so there is a least.
    def is_enough(buffer_packets: int) -> bool:
        return not any(record.returns for record in runs(policy, buffer_packets, PATIENT))

    return bisect_left(range(MOST), True, key=is_enough)


def kept(policy: str, buffer_packets: int) -> str:
    """Return how a load balancer does with NICs that have so much room."""
    records = runs(policy, buffer_packets, {})
    over = [100 * record.increase for record in records]
    returns = mean(record.returns for record in records)
    return f"{mean(over):,.1f} ± {stdev(over):.1f} %, {returns:,.0f}"


def runs(policy: str, buffer_packets: int, settings: dict[str, Any]) -> list[Record]:
    """Return the records of a permutation with such NICs, by seed."""
    transport = {"transport__recovery": "go_back_n", "transport__reorder_packets": buffer_packets}
    chosen = grid({**PERMUTATION, **transport, **settings}, (policy,), SEEDS)
    return [simulate(scenario) for scenario in chosen]


ROWS = {slug: partial(reordered, slug) for slug in BALANCERS}
