"""GOAL schedules as columns: the result of reading either form, operation by operation."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fattree.errors import TrafficError
from fattree.files.fields import Fields, Use

Int64 = NDArray[np.int64]
# A peer or tag of -1, as the binary form has it.
ANY = 2**32 - 1
# Far more than any fabric has hosts; a line of text must not make gigabytes of empty ranks.
MOST_RANKS = 1 << 20
# The words of the text; of the binary form, the same fields and their counts.
TABLE = (
    Fields(("num_ranks", "rank", "label", "requires", "irequires"), Use.USED, ""),
    Fields(("calc",), Use.USED, "nanoseconds"),
    Fields(("send", "to", "from"), Use.USED, "a peer of -1 is refused"),
    Fields(("recv",), Use.USED, "its bytes are left out: what arrives is what is sent"),
    Fields(("tag",), Use.USED, "-1 is refused: what it matches would depend on times"),
    Fields(("cpu",), Use.USED, "calculations of one processor take turns"),
    Fields(
        ("nic",),
        Use.USED,
        "of a send: the plane of that number; of a receive the same, or 0; of a calc left out",
    ),
    Fields(("any other",), Use.REFUSED, ""),
)


class Kind(IntEnum):
    """The kinds of operations, as numbered in the binary form."""

    SEND = 1
    RECEIVE = 2
    CALCULATE = 3


@dataclass(frozen=True, slots=True)
class Schedule:
    """The operations of all ranks, rank after rank, as int64 columns of one length.

    `size` is in bytes, or ns; `place` is an operation's line, or in the binary form its number in
    its rank. `requires` and `starts_after` have a column for each dependency: the operation that
    waits, and the operation that must be complete, or have started.
    """

    source: str
    ranks: int
    is_text: bool
    rank: Int64
    kind: Int64
    size: Int64
    peer: Int64
    tag: Int64
    cpu: Int64
    nic: Int64
    place: Int64
    requires: Int64
    starts_after: Int64

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all sends."""
        sizes = self.size[self.kind == Kind.SEND]
        return int(sizes.sum())

    @property
    def dependencies(self) -> int:
        """Return how many dependencies of both kinds there are."""
        return int(self.requires.shape[1] + self.starts_after.shape[1])

    def error(self, operation: Any, problem: str) -> TrafficError:
        """Return the error of an operation, by its line or its rank and number."""
        line = int(self.place[operation])
        rank = int(self.rank[operation])
        where = f":{line}" if self.is_text else f": rank {rank}, operation {line}"
        return TrafficError(f"{self.source}{where}: {problem}")


def refuse_many_ranks(count: int, where: str) -> int:
    """Return a number of ranks that can be; raises TrafficError."""
    if count > MOST_RANKS:
        raise TrafficError(f"{where}: has {count:,} ranks, more than {MOST_RANKS:,}")

    return count
