"""The updates of a switch as messages: phases over the whole fabric, and changes that are made only
when they are sent.

At k = 64 a first plan has 13 million entries, and one failed core link changes 4 million. So a
message knows what it will hold and how much, and makes the changes when somebody looks at them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, overload

from controller.entries import Batch, Change

MOST_UPDATES = 1_000


class Phase(IntEnum):
    """The three parts of a change; over the whole fabric each is complete before the next begins.

    So a switch that others start to use has its routes before, and loses old ones only when nobody
    comes any more.
    """

    ADD = 0
    MOVE = 1
    REMOVE = 2


class Piece(NamedTuple):
    """So many changes, and what makes them."""

    size: int
    make: Callable[[], Iterable[Change]]


class Changes(Sequence[Change]):
    """A sequence of changes, made anew whenever it is walked."""

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


def packed(phase: Phase, pieces: Iterable[Piece]) -> Iterator[Part]:
    """Pack pieces, in order, into messages that a switch takes in well within a deadline."""
    waiting: list[Piece] = []
    room = MOST_UPDATES
    for piece in pieces:
        start = 0
        while start < piece.size:
            taken = min(room, piece.size - start)
            waiting.append(_slice(piece, start, taken))
            start = start + taken
            room = room - taken

            if room == 0:
                yield Part(phase, Changes(waiting))
                waiting = []
                room = MOST_UPDATES

    if waiting:
        yield Part(phase, Changes(waiting))


def _slice(piece: Piece, start: int, count: int) -> Piece:
    return (
        piece
        if count == piece.size
        else Piece(count, partial(_sliced, piece, start, start + count))
    )


def _sliced(piece: Piece, start: int, stop: int) -> Iterator[Change]:
    return islice(piece.make(), start, stop)
