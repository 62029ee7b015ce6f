"""The updates of a switch as messages: make before break, and made only when they are sent.

At k = 64 a first plan has 13 million entries, and one failed core link changes 4 million. So a
message knows the number of its changes, and makes them when they are read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, overload

from controller.entries import Batch, Change, Kind

# An update has some 60 B on the wire, and 4,000 take a busy software switch half a second
# (docs/control-plane.md): far from gRPC's limit of 4 MiB a message and the session's deadline.
MOST_UPDATES = 1_000


class Phase(IntEnum):
    """The three parts of a change; over the whole fabric each is complete before the next begins.

    So a switch has its new routes before traffic is moved to it, and loses old routes after traffic
    has left.
    """

    ADD = 0
    MOVE = 1
    REMOVE = 2


class Turn(IntEnum):
    """The order of a switch's updates: make before break.

    P4Runtime promises a packet the tables between two updates, never within an update. So a
    schedule in use is whole, if all its slots are there before the first route
    leads to it, and until the last route has left it.
    """

    MAKE = 0
    ADD_ROUTE = 1
    MOVE_ROUTE = 2
    REMOVE_ROUTE = 3
    BREAK = 4

    @classmethod
    def of(cls, kind: Kind, table: str) -> "Turn":
        """Return the turn of an update of a table."""
        is_route = table == "routes"
        match kind:
            case Kind.INSERT:
                return cls.ADD_ROUTE if is_route else cls.MAKE
            case Kind.MODIFY:
                return cls.MOVE_ROUTE if is_route else cls.MAKE
            case Kind.DELETE:
                return cls.REMOVE_ROUTE if is_route else cls.BREAK

    @property
    def phase(self) -> Phase:
        """Return the phase over the whole fabric that it belongs to."""
        return PHASES[self]


# A server may reorder the updates of one Write (p4runtime.proto, WriteRequest), though BMv2 and our
# switch keep their order. So a route moves only when the messages with its schedule have been
# acknowledged: that ends a phase. Routes that are added and removed may share messages with
# their schedules: a packet without a whole path has none before an addition, or after a removal.
PHASES = {
    Turn.MAKE: Phase.ADD,
    Turn.ADD_ROUTE: Phase.ADD,
    Turn.MOVE_ROUTE: Phase.MOVE,
    Turn.REMOVE_ROUTE: Phase.REMOVE,
    Turn.BREAK: Phase.REMOVE,
}


class Piece(NamedTuple):
    """A number of changes of one turn, and the function that makes them."""

    turn: Turn
    size: int
    make: Callable[[], Iterable[Change]]


class Changes(Sequence[Change]):
    """A sequence of changes, made anew whenever it is walked.

    They are counted before they are made, walked once when they are sent, and hardly ever kept.
    """

    __slots__ = ("_length", "_pieces")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = tuple(pieces)
        self._length = sum(piece.size for piece in self._pieces)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Change]:
        return chain.from_iterable(piece.make() for piece in self._pieces)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Batch: ...
    def __getitem__(self, index: int | slice) -> Any:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class Part(NamedTuple):
    """A message of one phase."""

    phase: Phase
    changes: Sequence[Change]


def in_order(pieces: Iterable[Piece]) -> Iterator[Part]:
    """Yield a switch's changes as messages in the order of their turns, however they come."""
    # Sorting is stable, so that pieces of one turn keep their order.
    by_turn = sorted(pieces, key=lambda piece: piece.turn)
    for phase, phase_pieces in groupby(by_turn, key=lambda piece: piece.turn.phase):
        yield from packed(phase, phase_pieces)


def packed(phase: Phase, pieces: Iterable[Piece]) -> Iterator[Part]:
    """Pack pieces, in order, into messages that a switch takes in well within a deadline."""
    waiting: list[Piece] = []
    free = MOST_UPDATES
    for piece in pieces:
        start = 0
        while start < piece.size:
            taken = min(free, piece.size - start)
            waiting.append(_slice(piece, start, taken))
            start = start + taken
            free = free - taken

            if free == 0:
                yield Part(phase, Changes(waiting))
                waiting = []
                free = MOST_UPDATES

    if waiting:
        yield Part(phase, Changes(waiting))


def _slice(piece: Piece, start: int, count: int) -> Piece:
    return (
        piece
        if count == piece.size
        else Piece(piece.turn, count, partial(_sliced, piece, start, start + count))
    )


def _sliced(piece: Piece, start: int, stop: int) -> Iterator[Change]:
    return islice(piece.make(), start, stop)
