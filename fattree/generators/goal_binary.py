"""GOAL's binary form, as LogGOPSim's txt2bin writes it: a magic number, then a part for each rank.

Versions before the magic number begin with how many ranks there are; nothing else in them describes
the layout of their operations.
"""

import numpy as np

from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.goal_schedule import MOST_RANKS, Int64, Kind, Schedule, refuse_many_ranks

# Where LogGOPSim has written into the file as it read it.
USED_UP = 2342
MOST = 2**63 - 1
AGAIN = "write it again with LogGOPSim's txt2bin, or take the text"
# An operation, its fields without gaps.
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
# Who follows whom: complete, or started.
FOLLOWING = (("followers", "first_follower"), ("start_followers", "first_start_follower"))
COLUMNS = ("kind", "size", "peer", "tag", "cpu", "nic")


def refuse_other_versions(content: bytes, source: str) -> None:
    """Raise TrafficError for a binary form that is none of today's."""
    if content[:8] == USED_UP.to_bytes(8, "little"):
        raise TrafficError(f"{source}: GOAL's binary form, used up by a run of LogGOPSim: {AGAIN}")

    # The first rank's part begins behind a table of two numbers for each rank.
    count = int.from_bytes(content[:4], "little")
    begin = int.from_bytes(content[4:12], "little")
    if 0 < count <= MOST_RANKS and begin == 4 + 16 * count:
        raise TrafficError(
            f"{source}: GOAL's binary form of another version, without a magic number: {AGAIN}"
        )


def read_binary(content: bytes, source: str, memory: Room) -> Schedule:
    """Read a schedule behind its magic number; raises TrafficError."""
    try:
        count = refuse_many_ranks(int(np.frombuffer(content, "<u4", 1, 8)[0]), source)
        table = np.frombuffer(content, "<u8", 2 * count, 14).reshape(-1, 2) + 8
        # Parts that are named again and again would make any number of operations.
        if sum(max(end - begin, 0) for begin, end in table.tolist()) > len(content):
            raise IndexError
        parts = [_rank(content[begin:end], memory) for begin, end in table.tolist()]
    except TrafficError:
        raise
    except (ValueError, IndexError):
        raise TrafficError(
            f"{source}: GOAL's binary form, but cut short or of another version: {AGAIN}"
        ) from None

    lengths = np.array([len(nodes) for nodes, *_ in parts], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    columns = {
        name: np.concatenate([np.zeros(0, np.int64), *(_whole(nodes[name]) for nodes, *_ in parts)])
        for name in COLUMNS
    }
    requires, starts_after = (
        np.concatenate(
            [
                np.zeros((2, 0), np.int64),
                *(part[way] + start for part, start in zip(parts, first, strict=True)),
            ],
            axis=1,
        )
        for way in (1, 2)
    )
    return Schedule(
        source=source,
        ranks=count,
        is_text=False,
        rank=np.repeat(np.arange(count), lengths),
        place=np.arange(lengths.sum()) - np.repeat(first, lengths),
        requires=requires,
        starts_after=starts_after,
        **columns,
    )


def _rank(content: bytes, memory: Room) -> tuple[np.ndarray, Int64, Int64]:
    """Return a rank's operations, and its dependencies of both kinds; raises IndexError."""
    count, roots = np.frombuffer(content, "<u4", 2).tolist()
    nodes = np.frombuffer(content, NODE, count, 8 + 4 * roots)
    appendix = np.frombuffer(content, "<u4", -1, 8 + 4 * roots + NODE.itemsize * count)
    memory.take(count, len(appendix))
    if not np.isin(nodes["kind"], list(Kind)).all():
        raise IndexError

    if int(sum(nodes[many].sum() for many, _ in FOLLOWING)) > len(appendix):
        raise IndexError

    requires, starts_after = (
        _followers(_whole(nodes[many]), _whole(nodes[first]), _whole(appendix))
        for many, first in FOLLOWING
    )
    return nodes, requires, starts_after


def _followers(many: Int64, first: Int64, appendix: Int64) -> Int64:
    """Return each follower and its operation, which has `many` followers, from `first` on."""
    before = np.cumsum(many) - many
    places = np.repeat(first - before, many) + np.arange(many.sum())
    followed = np.repeat(np.arange(len(many)), many)
    followers = appendix[places]
    if (followers >= len(many)).any():
        raise IndexError

    return np.stack([followers, followed])


def _whole(column: np.ndarray) -> Int64:
    # Sizes have 64 bits without a sign: sizes beyond int64 are refused as too large later.
    beyond = column > MOST if column.dtype.itemsize == 8 else False
    return np.where(beyond, MOST, column).astype(np.int64)
