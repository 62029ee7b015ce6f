"""Parser value sets at run time."""

from __future__ import annotations

from collections.abc import Sequence

from ofan_p4.softswitch.state.tables import Match

# Per key field (low, high, mask): a value matches if it lies between low and high, or, where both
# are equal, if it equals them under the mask.
ValueMatch = tuple[tuple[int, int, int], ...]


class ValueSetState:
    """The members of a value set, as the control plane writes and as the parser compares."""

    def __init__(self) -> None:
        self.members: list[tuple[Match, ValueMatch]] = []

    def replace(self, members: Sequence[tuple[Match, ValueMatch]]) -> None:
        """Make these the members."""
        self.members = list(members)

    def matches(self, key: Sequence[int], masks: Sequence[int | None]) -> bool:
        """Return whether the (already masked) key is in the set.

        `masks` apply to the members too.
        """
        return any(
            all(
                _matches(value, field, -1 if mask is None else mask)
                for value, field, mask in zip(key, member, masks, strict=False)
            )
            for _, member in self.members
        )


def _matches(value: int, field: tuple[int, int, int], mask: int) -> bool:
    low, high, bits = field
    # Exact, lpm, ternary and optional members: a value under a mask, and the key's own mask.
    if low == high:
        return value & bits == low & bits & mask

    return low <= value <= high
