"""Interleaved weighted round robin: weights become the sequence of ports that pointers walk (appendix F).

Why interleaved: a port of weight w appears in w different cycles instead of w times in a row, so queues stay short.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def simplify(weights: Sequence[int]) -> list[int]:
    """Divide weights by their greatest common divisor; all-zero weights stay."""
    divisor = math.gcd(*weights) or 1
    return [weight // divisor for weight in weights]


def interleave(weights: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the IWRR schedule: cycle c = 1 .. max weight visits, in `order`, every port whose weight is at least c.

    `weights` has one weight a port, `order` is a permutation of the ports (Katevenis 1991).
    """
    ordered = weights[order]
    cycles = np.arange(1, int(ordered.max(initial=0)) + 1)[:, None]
    return np.broadcast_to(order.astype(np.uint8), (len(cycles), len(order)))[ordered >= cycles]
