"""GOAL schedules (Group Operation Assembly Language), as text and as LogGOPSim's binary form.

    num_ranks 2
    rank 0 {
    l1: calc 1000 cpu 0
    l2: send 4096b to 1 tag 7 cpu 0 nic 0
    l2 requires l1
    }
    rank 1 {
    l1: recv 4096b from 0 tag 7
    l2: calc 500
    l2 irequires l1
    }

`requires`: not before that is complete; `irequires`: not before that has started.
"""

import re
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from fattree.errors import TrafficError
from fattree.files.memory import Room

MAGIC = 4223
ANY = 2**32 - 1
# Far more than any fabric has hosts; a line of text must not make gigabytes of empty ranks.
MOST_RANKS = 1 << 20
LABEL = r"[A-Za-z][A-Za-z0-9_]*"
OPERATION = re.compile(
    rf"(?:({LABEL})\s*:\s*)?(?:"
    r"calc\s+(\d{1,18})(?:\s+cpu\s+(\d{1,3}))?"
    r"|(send|recv)\s+(\d{1,18})b\s+(to|from)\s+(-1|\d{1,9})(?:\s+tag\s+(-1|\d{1,10}))?"
    r"(?:\s+cpu\s+(\d{1,3}))?(?:\s+nic\s+\d{1,3})?)",
    re.ASCII,
)
RANKS = re.compile(r"\d{1,9}", re.ASCII)
NEEDS = re.compile(rf"({LABEL})\s+(i?requires)\s+({LABEL})", re.ASCII)
COMMENT = re.compile(r"//[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)
# A node of the binary form, its fields without gaps.
NODE = np.dtype(
    [
        ("needs", "<u4"),
        ("kind", "i1"),
        ("peer", "<u4"),
        ("size", "<u8"),
        ("tag", "<u4"),
        ("cpu", "u1"),
        ("nic", "u1"),
        ("followers", "<u4"),
        ("first_follower", "<u4"),
        ("start_followers", "<u4"),
        ("first_start_follower", "<u4"),
    ]
)


class Kind(IntEnum):
    """What an operation does, as numbered in the binary form."""

    SEND = 1
    RECEIVE = 2
    CALCULATE = 3


@dataclass(slots=True)
class Operation:
    """One line of a rank: `size` bytes, or ns; `requires` and `starts_after` are its rank's lines.

    `where` is what errors call it.
    """

    kind: Kind
    size: int
    peer: int
    tag: int
    cpu: int
    where: str
    requires: list[int] = field(default_factory=list)
    starts_after: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The operations of every rank."""

    source: str
    ranks: list[list[Operation]]

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all sends."""
        return sum(one.size for rank in self.ranks for one in rank if one.kind is Kind.SEND)

    @property
    def dependencies(self) -> int:
        """Return how many dependencies of both kinds there are."""
        return sum(len(one.requires) + len(one.starts_after) for rank in self.ranks for one in rank)


def read_goal(content: bytes, source: str, room: Room | None = None) -> Schedule:
    """Read a schedule in either form; raises TrafficError naming the line, or the rank."""
    room = room or Room()
    if content[:8] == MAGIC.to_bytes(8, "little"):
        return _binary(content, source, room)

    try:
        return _text(content.decode(), source, room)
    except UnicodeDecodeError:
        raise TrafficError(f"{source}: neither GOAL's text nor its binary form") from None


def _text(text: str, source: str, room: Room) -> Schedule:
    plain = _without_comments(text, source)
    ranks: dict[int, list[Operation]] = {}
    labels: dict[str, int] = {}
    count = 0
    current: list[Operation] | None = None

    for number, line in enumerate(plain.split("\n"), start=1):
        where = f"{source}:{number}"
        match line.split():
            case []:
                continue
            case ["num_ranks", digits] if RANKS.fullmatch(digits) and not count:
                count = _ranks(int(digits), where)
            case ["rank", digits, "{"] if RANKS.fullmatch(digits) and current is None:
                labels, current = {}, []
                if ranks.setdefault(int(digits), current) is not current or int(digits) >= count:
                    raise TrafficError(
                        f"{where}: rank {digits} is given twice, or is not below num_ranks {count}"
                    )
            case ["}"] if current is not None:
                current = None
            case _:
                room.take(1)
                _line(line.strip(), where, current, labels)

    if current is not None or not count:
        raise TrafficError(f"{source}: expected {'a closing }' if count else 'num_ranks'}")

    return Schedule(source, [ranks.get(rank, []) for rank in range(count)])


def _without_comments(text: str, source: str) -> str:
    # Their line ends stay, so that lines keep their numbers.
    def line_ends(found: re.Match[str]) -> str:
        if found[1] == "":
            number = text.count("\n", 0, found.start()) + 1
            raise TrafficError(f"{source}:{number}: this comment has no end")

        return "\n" * found[0].count("\n")

    return COMMENT.sub(line_ends, text)


def _ranks(count: int, where: str) -> int:
    if count > MOST_RANKS:
        raise TrafficError(f"{where}: has {count:,} ranks, more than {MOST_RANKS:,}")

    return count


def _line(line: str, where: str, rank: list[Operation] | None, labels: dict[str, int]) -> None:
    if rank is None:
        raise TrafficError(f"{where}: expected num_ranks N, or rank N {{, found {line[:40]!r}")

    needs = NEEDS.fullmatch(line)
    if needs:
        _need(where, rank, labels, *needs.groups())
        return

    found = OPERATION.fullmatch(line)
    if not found or (found[4] and (found[4] == "send") != (found[6] == "to")):
        raise TrafficError(
            f"{where}: expected calc N, send Nb to RANK, recv Nb from RANK or A requires B, "
            f"found {line[:40]!r}"
        )

    label, time, cpu, kind_name, size, _, peer, tag, own_cpu = found.groups()
    if label in labels:
        raise TrafficError(f"{where}: the label {label} is given twice")
    if label:
        labels[label] = len(rank)

    if time is not None:
        rank.append(Operation(Kind.CALCULATE, int(time), 0, 0, int(cpu or 0), where))
        return

    rank.append(
        Operation(
            kind=Kind.SEND if kind_name == "send" else Kind.RECEIVE,
            size=int(size),
            peer=int(peer) % (ANY + 1),
            tag=int(tag or 0) % (ANY + 1),
            cpu=int(own_cpu or 0),
            where=where,
        )
    )


def _need(
    where: str,
    rank: list[Operation],
    labels: dict[str, int],
    later: str,
    kind: str,
    earlier: str,
) -> None:
    for label in (later, earlier):
        if label not in labels:
            raise TrafficError(f"{where}: there is no label {label} in this rank")

    operation = rank[labels[later]]
    needed = operation.requires if kind == "requires" else operation.starts_after
    needed.append(labels[earlier])


def _binary(content: bytes, source: str, room: Room) -> Schedule:
    try:
        count = _ranks(int(np.frombuffer(content, "<u4", 1, 8)[0]), source)
        table = np.frombuffer(content, "<u8", 2 * count, 14).reshape(-1, 2) + 8
        # Parts that are named again and again would make any number of operations.
        if sum(max(end - begin, 0) for begin, end in table.tolist()) > len(content):
            raise IndexError
        ranks = [
            _binary_rank(content[begin:end], f"{source}: rank {rank}", room)
            for rank, (begin, end) in enumerate(table.tolist())
        ]
    except TrafficError:
        raise
    except (ValueError, IndexError):
        raise TrafficError(f"{source}: GOAL's binary form, but cut short") from None

    return Schedule(source, ranks)


def _binary_rank(content: bytes, source: str, room: Room) -> list[Operation]:
    nodes, roots = np.frombuffer(content, "<u4", 2).tolist()
    table = np.frombuffer(content, NODE, nodes, 8 + 4 * roots)
    edges = np.frombuffer(content, "<u4", -1, 8 + 4 * roots + NODE.itemsize * nodes)
    room.take(nodes, len(edges))
    appendix = edges.tolist()
    kinds = [Kind(kind) for kind in table["kind"].tolist()]
    size, peer, tag, cpu = (table[name].tolist() for name in ("size", "peer", "tag", "cpu"))
    rank = [
        Operation(kind, size[at], peer[at], tag[at], cpu[at], f"{source}, operation {at}")
        for at, kind in enumerate(kinds)
    ]

    followers = ("followers", "first_follower", "start_followers", "first_start_follower")
    rows = zip(*(table[name].tolist() for name in followers), strict=True)
    if int(table["followers"].sum() + table["start_followers"].sum()) > len(appendix):
        raise IndexError

    for number, (many, first, many_starts, first_start) in enumerate(rows):
        for follower in appendix[first : first + many]:
            rank[follower].requires.append(number)

        for follower in appendix[first_start : first_start + many_starts]:
            rank[follower].starts_after.append(number)

    return rank
