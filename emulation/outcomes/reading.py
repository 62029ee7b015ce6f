"""The counters of a running network at one instant."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PortReading:
    """The counters of all ports, as arrays [switch, port] (column 0 is no port).

    `carried` are the bytes that have left, `queued` those that wait, `longest` the most that ever
    waited.
    """

    carried: Int64
    queued: Int64
    longest: Int64
    dropped: Int64
    lost_to_failure: Int64


@dataclass(frozen=True, slots=True, eq=False)
class FlowReading:
    """The progress of all flows, as arrays by flow; NEVER for times that have not come."""

    acked: Int64
    start_ps: Int64
    done_ps: Int64


def by_port(tree: FatTree, columns: Iterable[ArrayLike]) -> PortReading:
    """Return a reading from columns with all ports of all switches, in order."""
    ends = [(switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
    switches, ports = np.array(ends, dtype=np.int64).T
    counts = np.zeros((5, tree.switches, tree.most_ports + 1), dtype=np.int64)
    for count, column in zip(counts, columns, strict=True):
        count[switches, ports] = column

    return PortReading(*counts)
