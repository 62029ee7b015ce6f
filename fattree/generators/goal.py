"""GOAL schedules as graphs, as far as a network here can run them.

A send begins when the operations that it requires are complete, without waiting for its receive
(there is no rendezvous), and matches the first unmatched receive of its ranks and tag. Receives
from any rank, or of any tag, are refused: their match depends on times. A send of no bytes without
a receive, as converters of traces write, is a mark that takes no time. A message goes over the NIC
that its send names, in the plane of that number.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import depths, offsets
from fattree.demand.workloads.graph import Graph, refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.goal_schedule import ANY, Int64, Kind, Schedule
from fattree.units import PS_PER_NS

MOST = 2**63 - 1


class Edges(NamedTuple):
    """Pairs of a waiting node and the node that it waits for."""

    waiting: Int64
    awaited: Int64


def goal_graph(schedule: Schedule, memory: Room | None = None) -> Graph:
    """Return a schedule as a graph; raises TrafficError for operations that cannot run here.

    Calculations of one processor run one after the other. `irequires` makes an operation wait for
    the other's dependencies.
    """
    _refuse_unsupported(schedule)
    starts, ranks = _starts(schedule)
    receives, sends = matches = _matched(schedule)
    count = len(schedule) + len(ranks)
    refuse_many(count)
    (memory or Room()).take(count, schedule.dependencies + len(receives))

    is_marked = _unmatched(schedule, sends)
    is_sent = (schedule.kind == Kind.SEND) & ~is_marked & (schedule.peer != schedule.rank)
    is_calculated = schedule.kind == Kind.CALCULATE
    # Without bytes it is a message all the same.
    size = np.where(is_sent, np.maximum(schedule.size, 1), 0)
    source = np.concatenate([schedule.rank, ranks])
    nothing = np.zeros(len(ranks), dtype=np.int64)
    waiting = np.concatenate([starts.waiting, receives])
    awaited = np.concatenate([starts.awaited, sends])
    turns = _in_turns(schedule, waiting, awaited, count)
    return Graph(
        source=source,
        destination=np.where(
            np.append(is_sent, nothing > 0), np.append(schedule.peer, nothing), source
        ),
        size=np.append(size, nothing),
        compute_ps=np.append(np.where(is_calculated, schedule.size * PS_PER_NS, 0), nothing),
        waiting=np.concatenate([waiting, turns.waiting]),
        awaited=np.concatenate([awaited, turns.awaited]),
        # In LogGOPS a NIC sends one message after the other.
        in_turn=True,
        nic=_nics(schedule, is_sent, matches, count),
    )


def _nics(
    schedule: Schedule, is_sent: NDArray[np.bool_], matches: Edges, count: int
) -> Int64 | None:
    """Return the NIC of each transfer, None where all are of the first; raises TrafficError.

    As in LogGOPSim it is that of the send. A receive may name the same one, or none (which is 0).
    """
    nic = np.zeros(count, dtype=np.int64)
    nic[: len(schedule)] = np.where(is_sent, schedule.nic, 0)
    receiving, sending = schedule.nic[matches.waiting], schedule.nic[matches.awaited]
    is_other = (receiving != 0) & (receiving != sending)
    if is_other.any():
        first = int(np.argmax(is_other))
        raise schedule.error(
            matches.waiting[first],
            f"receives at NIC {receiving[first]} what NIC {sending[first]} sends: a NIC reaches"
            " only those of its own number",
        )

    return nic if nic.any() else None


def marks(schedule: Schedule, graph: Graph) -> int:
    """Return how many sends of a schedule are marks, which its graph does not send."""
    is_sent = (schedule.kind == Kind.SEND) & (schedule.peer != schedule.rank)
    return int(is_sent.sum() - (graph.size > 0).sum())


def _refuse_unsupported(schedule: Schedule) -> None:
    is_calculated = schedule.kind == Kind.CALCULATE
    too_large = is_calculated & (schedule.size > MOST // PS_PER_NS)
    if too_large.any():
        first = int(np.argmax(too_large))
        ps = float(schedule.size[first]) * PS_PER_NS
        raise TrafficError(
            f"rank {schedule.rank[first]}: an operation of {ps:.1e} bytes or ps is too large"
        )

    is_mark = (schedule.kind == Kind.SEND) & (schedule.size == 0) & (schedule.peer == ANY)
    is_message = ~is_calculated & ~is_mark
    is_any = is_message & ((schedule.peer == ANY) | (schedule.tag == ANY))
    if is_any.any():
        raise schedule.error(
            np.argmax(is_any),
            "a peer or tag of -1 is not supported: what it matches would depend on times",
        )

    is_beyond = is_message & (schedule.peer >= schedule.ranks)
    if is_beyond.any():
        first = int(np.argmax(is_beyond))
        raise schedule.error(
            first, f"there is no rank {schedule.peer[first]}, ranks are 0 to {schedule.ranks - 1}"
        )


def _matched(schedule: Schedule) -> Edges:
    """Return each receive and its send: the first send left of its ranks and tag."""
    sends = np.flatnonzero(schedule.kind == Kind.SEND)
    receives = np.flatnonzero(schedule.kind == Kind.RECEIVE)
    rank, peer, tag = schedule.rank, schedule.peer, schedule.tag
    ends = (
        np.concatenate([rank[sends], peer[receives]]),
        np.concatenate([peer[sends], rank[receives]]),
        np.concatenate([tag[sends], tag[receives]]),
    )
    is_receive = np.arange(len(ends[0])) >= len(sends)
    operation = np.concatenate([sends, receives])

    # Which of its kind, ranks and tag each is; then those of one place are neighbours.
    order = np.lexsort((operation, is_receive, *ends))
    sorted_ends = np.stack([*(end[order] for end in ends), is_receive[order]])
    is_first = np.append(True, (np.diff(sorted_ends, axis=1) != 0).any(axis=0))[: len(order)]
    begins = np.flatnonzero(is_first)
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    del sorted_ends, order

    order = np.lexsort((is_receive, turn, *ends))
    keys = [key[order] for key in (*ends, turn)]
    is_pair = ~is_receive[order][:-1] & is_receive[order][1:]
    for key in keys:
        is_pair &= key[:-1] == key[1:]

    pairs = np.flatnonzero(is_pair)
    pairing = Edges(waiting=operation[order[pairs + 1]], awaited=operation[order[pairs]])
    if len(pairs) < len(receives):
        alone = np.setdiff1d(receives, pairing.waiting)
        raise schedule.error(alone[0], "nothing is sent that it could receive")

    return pairing


def _unmatched(schedule: Schedule, matched: Int64) -> NDArray[np.bool_]:
    """Return which sends have no receive; raises TrafficError if such a send has bytes."""
    is_left: NDArray[np.bool_] = schedule.kind == Kind.SEND
    is_left[matched] = False
    is_lost = is_left & (schedule.size > 0)
    if is_lost.any():
        raise schedule.error(np.argmax(is_lost), "nobody receives it")

    return is_left


def _starts(schedule: Schedule) -> tuple[Edges, Int64]:
    """Return the edges of waiting operations, and the ranks of the nodes at which waits meet.

    Such a node is complete when all operations are that must precede the start of an operation
    which other operations start after. A long chain of such operations waits for one node each,
    instead of for all earlier operations. These nodes have numbers behind the operations.
    """
    starts_after = schedule.starts_after
    # Each once, those of one operation in their order.
    keys = np.unique(schedule.requires[0] * len(schedule) + schedule.requires[1])
    requires = np.stack(np.divmod(keys, max(len(schedule), 1)))
    if not starts_after.size:
        return Edges(*requires), np.zeros(0, dtype=np.int64)

    is_special = np.zeros(len(schedule), dtype=np.bool_)
    is_special[starts_after.ravel()] = True
    is_plain = ~is_special[requires[0]]
    waiting, awaited = requires[0][is_plain].tolist(), requires[1][is_plain].tolist()
    needed: dict[int, list[int]] = {}
    for later, earlier in requires[:, ~is_plain].T.tolist():
        needed.setdefault(later, []).append(earlier)

    ranks: list[int] = []
    begun: dict[int, list[int]] = {}
    is_awaited = set(starts_after[1].tolist())
    for operation, after in _in_order(schedule):
        before = chain.from_iterable(begun[earlier_one] for earlier_one in after)
        needs = sorted({*needed.get(operation, ()), *before})
        if operation in is_awaited and len(needs) > 1:
            meeting = len(schedule) + len(ranks)
            ranks.append(int(schedule.rank[operation]))
            waiting += [meeting] * len(needs)
            awaited += needs
            needs = [meeting]

        waiting += [operation] * len(needs)
        awaited += needs
        begun[operation] = needs

    columns = (np.array(ends, dtype=np.int64) for ends in (waiting, awaited))
    return Edges(*columns), np.array(ranks, dtype=np.int64)


def _in_order(schedule: Schedule) -> Iterator[tuple[int, list[int]]]:
    """Yield operations that start after others, and these, each behind those; raises TrafficError.

    With each come those that it starts after.
    """
    later, earlier = schedule.starts_after
    by_rank: dict[int, dict[int, list[int]]] = {}
    order = np.argsort(later, kind="stable")
    ranks = schedule.rank[later[order]]
    for rank, follower, leader in zip(
        ranks.tolist(), later[order].tolist(), earlier[order].tolist(), strict=True
    ):
        by_rank.setdefault(rank, {}).setdefault(follower, []).append(leader)

    for after in by_rank.values():
        try:
            ordered = list(TopologicalSorter(after).static_order())
        except CycleError as error:
            raise schedule.error(
                error.args[1][0], "starts after itself, by irequires in a circle"
            ) from None

        yield from ((operation, after.get(operation, [])) for operation in ordered)


def _in_turns(schedule: Schedule, waiting: Int64, awaited: Int64, count: int) -> Edges:
    """Return edges by which the calculations of each processor run one after the other.

    Their order is that of their depth, then of the file: a calculation comes after all that it
    waits for.
    """
    offset = offsets(np.bincount(waiting, minlength=count))
    depth = depths(offset, awaited[np.argsort(waiting, kind="stable")])
    chosen = np.flatnonzero(schedule.kind == Kind.CALCULATE)
    keys = (depth[chosen], schedule.cpu[chosen], schedule.rank[chosen])
    order = np.lexsort((chosen, *keys))
    is_next = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys[1:]:
        is_next &= np.diff(key[order]) == 0

    turns = chosen[order]
    return Edges(waiting=turns[1:][is_next], awaited=turns[:-1][is_next])
