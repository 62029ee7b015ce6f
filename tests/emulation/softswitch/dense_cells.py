"""Dense tables read as machine code reads them, by `ofan_p4.softswitch.native.context`."""

from __future__ import annotations

from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.dense import Dense


def walked(table: Dense, key: int) -> int:
    """Return the index of a key's entry plus 1, or 0."""
    node = 0
    for level in table.levels.tolist():
        node_entry = int(table.cells[node])
        if key & level[context.SHARED] != level[context.SHARED_VALUE]:
            return node_entry

        high = key >> level[context.RUN_SHIFT] & level[context.RUN_ONES]
        low = key >> level[context.LOW_SHIFT] & level[context.LOW_ONES]
        cell = int(table.cells[node + 1 + (high << level[context.RUN_ABOVE]) + low])
        if cell < context.DENSE_NODE:
            return cell

        node = cell - context.DENSE_NODE

    raise AssertionError("the last level leads to a node")
