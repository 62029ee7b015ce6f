"""The sixteen orders of Switch Pkt: rotations of as few random orders as possible."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fattree.policies import POLICIES, RESHUFFLE_ORDERS
from fattree.routes.forwarding import port_orders


def orders(k: int) -> NDArray[np.int64]:
    """Return the orders of one switch, shape (16, h)."""
    switch = np.array([3], dtype=np.int64)
    of_switches = port_orders(
        POLICIES["switch_pkt"], seed=1, switches=switch, uplinks=k // 2, blocks=RESHUFFLE_ORDERS
    )
    of_switch: NDArray[np.int64] = of_switches[0]
    return of_switch


@pytest.mark.parametrize("k", [4, 8, 16, 32])
def test_each_slot_meets_each_uplink_equally_often(k: int) -> None:
    half = k // 2
    for slot in orders(k).T:
        assert np.bincount(slot, minlength=half).tolist() == [RESHUFFLE_ORDERS // half] * half


@pytest.mark.parametrize("k", [64, 128])
def test_with_more_uplinks_than_orders_rotations_are_evenly_spaced(k: int) -> None:
    """Rotations by one would be nearly the same order, 16 times: flows in step stay in step."""
    half = k // 2
    for uplink in range(half):
        slots = np.sort((orders(k) == uplink).argmax(axis=1))
        gaps = np.diff(slots, append=slots[0] + half)
        assert gaps.tolist() == [half // RESHUFFLE_ORDERS] * RESHUFFLE_ORDERS
