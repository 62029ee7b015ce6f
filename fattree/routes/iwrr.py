"""Interleaved weighted round robin: weights become the sequence of ports that pointers walk.

Ofan's schedules are such sequences (the paper's "Ofan" and appendix F).
Why interleaved: a port of weight w appears in w different cycles instead of w times in a row, so
queues stay short.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Weight = TypeVar("Weight", bound=np.integer)


def simplify(weights: NDArray[Weight]) -> NDArray[Weight]:
    """Divide each row of weights (rows, ports) by its greatest common divisor.

    Rows of zeros stay.
    """
    # gcd(0, ..., 0) is 0: a row of zeros is divided by 1 instead.
    divisors = np.gcd.reduce(weights, axis=-1, keepdims=True)
    return weights // np.maximum(divisors, 1)


def interleave(
    weights: NDArray[Weight], orders: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the IWRR schedules of rows of weights, one after the other, and their lengths.

    Cycle c = 1 .. max weight of a row visits, in the row's order, every port with a weight of at
    least c (Katevenis 1991). `weights` (rows, ports) are simplified, `orders` (rows, ports) are
    permutations of the ports.
    """
    # `emitted[row, cycle, place]`, flattened row by row and cycle by cycle, is the order wanted.
    ordered = np.take_along_axis(weights, orders, axis=1)
    cycles = np.arange(1, int(ordered.max(initial=0)) + 1, dtype=ordered.dtype)
    emitted = ordered[:, None, :] >= cycles[:, None]
    slots = np.broadcast_to(orders.astype(np.uint8)[:, None, :], emitted.shape)[emitted]

    return slots, weights.sum(axis=1, dtype=np.int64)
