"""Fields of files that others have made: which a reader uses, and which it leaves out, and why.

Each reader has a table of these rows, and reads by it. A field that could change times or bytes and
is not used is refused by its name. docs/workloads.md shows all tables.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Use(Enum):
    """The treatment of a field by a reader."""

    USED = "used"
    LEFT_OUT = "left out"
    REFUSED = "refused"


class Fields(NamedTuple):
    """Fields that a reader treats alike, and its reason; `*` in a name stands for any letters."""

    names: tuple[str, ...]
    use: Use
    why: str


def names(table: Iterable[Fields], *uses: Use) -> tuple[str, ...]:
    """Return the names of the fields of these uses, in the table's order."""
    return tuple(name for row in table if row.use in uses for name in row.names)
