"""Dense tables against the definition of a longest prefix."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ofan_p4.softswitch.native.dense import dense
from tests.emulation.softswitch.dense_cells import walked

KEYS = 40
# Of drawn tables, so many are dense: else nothing has been compared.
MOST_ARE = 0.9


def longest(entries: dict[tuple[int, int], int], bits: int, key: int) -> int:
    fits = [
        (length, number)
        for (value, length), number in entries.items()
        if key >> (bits - length) == value >> (bits - length)
    ]
    return max(fits)[1] + 1 if fits else 0


def drawn(draw: Random) -> tuple[dict[tuple[int, int], int], int, int, int]:
    """Return entries by (value, length), the key's bits, a key, and which bits others vary."""
    bits = draw.choice([8, 16, 32, 48])
    lengths = sorted({draw.randint(0, bits) for _ in range(draw.randint(1, 4))})
    base = draw.getrandbits(bits)
    vary = sum({1 << draw.randrange(bits) for _ in range(draw.randint(1, 6))})
    entries: dict[tuple[int, int], int] = {}
    for number in range(draw.randint(1, 30)):
        length = draw.choice(lengths)
        value = base ^ (draw.getrandbits(bits) & vary)
        entries[value >> (bits - length) << (bits - length), length] = number

    return entries, bits, base, vary


@pytest.mark.parametrize("seed", range(5))
def test_the_longest_prefix_is_found(seed: int) -> None:
    draw = Random(seed)
    dense_count = 0
    for _ in range(100):
        entries, bits, base, vary = drawn(draw)
        table = dense(
            np.array([value for value, _ in entries], dtype=np.uint64),
            np.array([length for _, length in entries]),
            np.array(list(entries.values())),
            bits,
            sorted({length for _, length in entries}),
        )
        if table is None:
            continue

        dense_count += 1
        for _ in range(KEYS):
            # Near the entries, or one bit away from all of them.
            near = base ^ (draw.getrandbits(bits) & vary)
            key = near if draw.random() < 0.8 else base ^ (1 << draw.randrange(bits))
            assert walked(table, key) == longest(entries, bits, key), (entries, key)

    assert dense_count > MOST_ARE * 100


def test_sparse_keys_have_no_dense_table() -> None:
    values = np.array([0, 1 << 20, 1 << 31 | 5], dtype=np.uint64)
    lengths = np.full(3, 32)

    assert dense(values, lengths, np.arange(3), 32, [32]) is None


def test_slots_of_schedules_lie_side_by_side() -> None:
    # Eight schedules of four slots each: one level with two runs of bits.
    schedule, slot = np.divmod(np.arange(32, dtype=np.uint64), np.uint64(4))
    table = dense(schedule << np.uint64(16) | slot, np.full(32, 48), np.arange(32), 48, [48])

    assert table is not None
    assert len(table.levels) == 1
    assert table.cells.tolist() == [0, *range(1, 33)]
