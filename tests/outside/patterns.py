"""Communication patterns as GOAL text: the graphs that LogGOPSim's Schedgen makes of them.

A pattern is a list of messages in the order in which ranks post them. Each is sent when all that it
waits for, which its own sender has received, is there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import log2
from typing import NamedTuple


class Message(NamedTuple):
    """Bytes from one rank to another, after earlier messages (their places in the list)."""

    source: int
    destination: int
    size: int
    after: tuple[int, ...] = ()


Pattern = Callable[[int, int], list[Message]]


def goal(ranks: int, messages: list[Message]) -> str:
    """Return the messages as a GOAL schedule; tags are their places."""
    lines = defaultdict[int, list[str]](list)
    for tag, (source, destination, size, after) in enumerate(messages):
        lines[source].append(f"s{tag}: send {size}b to {destination} tag {tag}")
        lines[source] += [f"s{tag} requires r{earlier}" for earlier in after]
        lines[destination].append(f"r{tag}: recv {size}b from {source} tag {tag}")

    blocks = [f"rank {rank} {{\n" + "\n".join(lines[rank]) + "\n}" for rank in range(ranks)]
    return "\n".join([f"num_ranks {ranks}", *blocks]) + "\n"


def rounds(ranks: int) -> Iterator[int]:
    """Return the distances 1, 2, 4, ... below the number of ranks."""
    return (1 << power for power in range(int(log2(ranks))))


def binomial_broadcast(ranks: int, size: int) -> list[Message]:
    """Each rank that has the data sends them to a rank without them, round by round."""
    messages: list[Message] = []
    received: dict[int, int] = {}
    for distance in rounds(ranks):
        for rank in range(distance):
            after = (received[rank],) if rank in received else ()
            received[rank + distance] = len(messages)
            messages.append(Message(rank, rank + distance, size, after))
    return messages


def binary_broadcast(ranks: int, size: int) -> list[Message]:
    """Each rank sends its parent's data to two children, first to the lower."""
    return [
        Message((child - 1) // 2, child, size, (((child - 1) // 2) - 1,) if child > 2 else ())
        for child in range(1, ranks)
    ]


def binomial_reduce(ranks: int, size: int) -> list[Message]:
    """The broadcast backwards: a rank sends when it has all of those below it."""
    messages: list[Message] = []
    received = defaultdict[int, list[int]](list)
    for distance in reversed(list(rounds(ranks))):
        for rank in range(distance, 2 * distance):
            received[rank - distance].append(len(messages))
            messages.append(Message(rank, rank - distance, size, tuple(received[rank])))
    return messages


def dissemination(ranks: int, size: int) -> list[Message]:
    """Each rank sends to the rank 1, 2, 4, ... ahead, each time after the message it got before."""
    messages: list[Message] = []
    for number, distance in enumerate(rounds(ranks)):
        for rank in range(ranks):
            # Messages of a round stand in the order of their senders.
            before = (rank - distance // 2) % ranks + (number - 1) * ranks
            after = (before,) if number else ()
            messages.append(Message(rank, (rank + distance) % ranks, size, after))
    return messages


def linear_all_to_all(ranks: int, size: int) -> list[Message]:
    """Each rank posts its messages to the ranks 1, 2, 3, ... ahead, all at once."""
    return [
        Message(rank, (rank + step) % ranks, size)
        for step in range(1, ranks)
        for rank in range(ranks)
    ]


def recursive_doubling_all_reduce(ranks: int, size: int) -> list[Message]:
    """Halves, quarters, ... to partners 1, 2, 4, ... away, and the same way back."""
    halvings = [(distance, size // (2 * distance)) for distance in rounds(ranks)]
    messages: list[Message] = []
    last: dict[int, int] = {}
    for distance, part in [*halvings, *reversed(halvings)]:
        received: dict[int, int] = {}
        for rank in range(ranks):
            after = (last[rank],) if last else ()
            received[rank ^ distance] = len(messages)
            messages.append(Message(rank, rank ^ distance, part, after))
        last = received
    return messages


def pipelined_ring(ranks: int, size: int, segments: int = 8) -> list[Message]:
    """Segments go from rank to rank along a chain, each as soon as it has arrived."""
    hops = ranks - 1
    return [
        Message(rank, rank + 1, size // segments, (segment * hops + rank - 1,) if rank else ())
        for segment in range(segments)
        for rank in range(hops)
    ]


def ring_all_gather(ranks: int, size: int) -> list[Message]:
    """Each rank passes on to the next rank the part it got last, at first its own part."""
    return [
        Message(
            rank,
            (rank + 1) % ranks,
            size // ranks,
            ((step - 1) * ranks + (rank - 1) % ranks,) if step else (),
        )
        for step in range(ranks - 1)
        for rank in range(ranks)
    ]


def bruck_all_gather(ranks: int, size: int) -> list[Message]:
    """Each rank sends all that it has to the rank 1, 2, 4, ... behind, as far as that lacks it."""
    messages: list[Message] = []
    held = 1
    while held < ranks:
        first = len(messages)
        for rank in range(ranks):
            # The message of the round before, from half as far.
            before = (first - ranks + (rank + held // 2) % ranks,) if first else ()
            part = min(held, ranks - held) * (size // ranks)
            messages.append(Message(rank, (rank - held) % ranks, part, before))
        held *= 2
    return messages


PATTERNS: dict[str, Pattern] = {
    pattern.__name__: pattern
    for pattern in (
        binomial_broadcast,
        binary_broadcast,
        binomial_reduce,
        dissemination,
        linear_all_to_all,
        recursive_doubling_all_reduce,
        pipelined_ring,
        ring_all_gather,
        bruck_all_gather,
    )
}
