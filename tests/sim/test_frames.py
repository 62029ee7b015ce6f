"""Fields that hosts write into frames, at every place that a user's headers may give them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

from sim.kernels.frames import put
from sim.kernels.state import Int64

FRAME_BYTES = 64
LABEL = 0


class Written(NamedTuple):
    """The part of `Frames` that writing a field needs."""

    words: Int64
    writes: Int64
    first_writes: Int64


def _put_label(frames: Written, frame: int, number: int) -> None:
    put(frames, frame, 0, LABEL, number)


put_label: Any = njit(_put_label)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_field_is_where_its_run_says_and_nowhere_else(size: int) -> None:
    number = int.from_bytes(b"\x81\x23\x45\x67"[:size], "big")
    mask = (1 << 8 * size) - 1

    for frame in (0, FRAME_BYTES):
        for offset in range(FRAME_BYTES - 8):
            content = np.zeros(2 * FRAME_BYTES // 8, dtype=np.int64)
            run = np.array([[offset, size, 0, mask, 0]], dtype=np.int64)
            put_label(Written(content, run, np.array([0, 1])), frame, number)

            expected = bytearray(2 * FRAME_BYTES)
            expected[frame + offset : frame + offset + size] = number.to_bytes(size, "big")
            assert content.tobytes() == expected, (frame, offset)
