"""Table entries and changes of them as plain values, by the names that the P4 programs use.

All code between the plan and the session uses these values; only the session has P4Runtime
messages.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

# A key field is a number where it is matched exactly, (value, prefix length) where by LPM.
Prefix: TypeAlias = tuple[int, int]
Match: TypeAlias = int | Prefix
Key: TypeAlias = tuple[Match, ...]
Call: TypeAlias = tuple[str, tuple[int, ...]]
# A mapping, not a dict: those of a plan are made when somebody looks (`reconcile.Wanted`).
Entries: TypeAlias = Mapping[tuple[str, Key], Call]


class Kind(IntEnum):
    """The kinds of updates, by the numbers of p4.v1.Update.Type."""

    INSERT = 1
    MODIFY = 2
    DELETE = 3


class Entry(NamedTuple):
    """An entry of a table: its key fields in order, and an action with its arguments.

    An empty key is the table's default entry.
    """

    table: str
    key: Key
    action: str
    arguments: tuple[int, ...]

    def __str__(self) -> str:
        key = ", ".join(map(_shown, self.key))
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.table}[{key}] = {self.action}({arguments})"


class Change(NamedTuple):
    """One update of a switch."""

    kind: Kind
    entry: Entry

    def __str__(self) -> str:
        return f"{self.kind.name} {self.entry}"


Batch: TypeAlias = tuple[Change, ...]


def _shown(match: Match) -> str:
    if isinstance(match, int):
        return str(match)

    # Only routes are matched by prefix, so a value is an IPv4 address.
    value, length = match
    return ".".join(str(value >> shift & 0xFF) for shift in (24, 16, 8, 0)) + f"/{length}"
