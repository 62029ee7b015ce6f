"""What machine code finds in a dense table, read as `ofan_p4.softswitch.native.context` says."""

from __future__ import annotations

from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.dense import Dense


def walked(table: Dense, key: int) -> int:
    """Return the index of a key's entry plus 1, or 0."""
    node = 0
    for words in table.levels.tolist():
        own = int(table.cells[node])
        if key & words[context.SHARED] != words[context.SHARED_VALUE]:
            return own

        high = key >> words[context.RUN_SHIFT] & words[context.RUN_ONES]
        low = key >> words[context.LOW_SHIFT] & words[context.LOW_ONES]
        cell = int(table.cells[node + 1 + (high << words[context.RUN_ABOVE]) + low])
        if cell < context.DENSE_NODE:
            return cell

        node = cell - context.DENSE_NODE

    raise AssertionError("the last level leads to a node")
