"""The counters of a virtual network at one instant, for live views."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


class PortsNow(NamedTuple):
    """The counters of all switches' ports, in their order (`shape.topology`), in bytes or packets.

    `carried` are the bytes that have left, `queued` those that wait, `longest` the most that ever
    waited.
    """

    carried: Int64
    queued: Int64
    longest: Int64
    dropped: Int64
    lost_to_failure: Int64


class FlowsNow(NamedTuple):
    """The progress of all flows: packets, and ps; NEVER for times that have not come."""

    acked: Int64
    start_ps: Int64
    done_ps: Int64


def never() -> bool:
    """Return False."""
    return False
