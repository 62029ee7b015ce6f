"""Collectives as graphs: which rank sends how much to which, round after round.

`size` is in bytes, as nccl-tests count it: the buffer of an all-reduce or broadcast, the
input of every rank to a reduce-scatter, the output of every rank from an all-gather; in an
all-to-all, the bytes that each rank sends to each other rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fattree.demand.workloads.graph import Graph, in_rounds, joined, refuse_many, transfers
from fattree.errors import TrafficError

Int64 = NDArray[np.int64]
# Sources, destinations and bytes of each, of one round.
Round = tuple[Int64, Int64, int]
# Ranks 0 .. n - 1 in rows, one a server; bytes.
Build = Callable[[Int64, int], Graph]


def collective_graph(matrix: str, algorithm: str, servers: Int64, size: int) -> Graph:
    """Return a collective of ranks in rows of one server each; raises TrafficError.

    Only the hierarchical algorithms look at rows.
    """
    build = ALGORITHMS[matrix].get(algorithm)
    if build is None:
        raise TrafficError(
            f'there is no {matrix} with algorithm = "{algorithm}": '
            f"choose from {', '.join(ALGORITHMS[matrix])}"
        )

    if servers.size < 2:
        raise TrafficError(f"{matrix} needs at least 2 hosts")

    return build(servers, size)


def of_rounds(rounds: Sequence[Round], *, in_turn: bool = False) -> Graph:
    """Return the transfers of rounds, each rank going on when its own last round is over.

    `in_turn`: a rank has one partner at a time, also where chunks of several rounds may go.
    """
    lengths = [len(source) for source, _, _ in rounds]
    refuse_many(sum(lengths))
    graph = transfers(
        np.concatenate([source for source, _, _ in rounds]),
        np.concatenate([destination for _, destination, _ in rounds]),
        np.repeat(np.array([size for *_, size in rounds], dtype=np.int64), lengths),
    )
    graph = in_rounds(graph, np.repeat(np.arange(len(rounds)), lengths))
    return replace(graph, in_turn=in_turn)


def ring_rounds(rings: Int64, steps: int, size: int) -> list[Round]:
    """Return `steps` rounds in which every rank of a ring (a row) sends to the next rank."""
    return [(rings.ravel(), np.roll(rings, -1, axis=1).ravel(), size)] * steps


def chain_rounds(chains: Int64, size: int) -> list[Round]:
    """Return the rounds that pass the bytes of a row's first rank on from rank to rank."""
    return [(chains[:, index], chains[:, index + 1], size) for index in range(chains.shape[1] - 1)]


def shift_rounds(groups: Int64, size: int) -> list[Round]:
    """Return the rounds in which each rank of a row sends to the next, the second next, ..."""
    return [
        (groups.ravel(), np.roll(groups, -shift, axis=1).ravel(), size)
        for shift in range(1, groups.shape[1])
    ]


def halving_rounds(ranks: int, size: int) -> list[Round]:
    """Return the rounds of recursive halving: half of the rest at half the distance each."""
    me = np.arange(ranks)
    distances = [ranks >> step for step in range(1, ranks.bit_length())]
    return [(me, me ^ distance, -(-size * distance // ranks)) for distance in distances]


def _ring_all_reduce(servers: Int64, size: int) -> Graph:
    """Reduce-scatter, then all-gather, each of n - 1 steps of size / n (Patarasuk, Yuan 2009)."""
    count = servers.size
    return of_rounds(ring_rounds(_row(servers), 2 * (count - 1), _part(size, count)))


def _ring(servers: Int64, size: int) -> Graph:
    """Half of an all-reduce: a reduce-scatter or an all-gather alone."""
    count = servers.size
    return of_rounds(ring_rounds(_row(servers), count - 1, _part(size, count)))


def _recursive_all_reduce(servers: Int64, size: int) -> Graph:
    """Halve, then double (Rabenseifner)."""
    halving = halving_rounds(_power_of_two(servers), size)
    return of_rounds(halving + halving[::-1], in_turn=True)


def _halving(servers: Int64, size: int) -> Graph:
    return of_rounds(halving_rounds(_power_of_two(servers), size), in_turn=True)


def _doubling(servers: Int64, size: int) -> Graph:
    return of_rounds(halving_rounds(_power_of_two(servers), size)[::-1], in_turn=True)


def _hierarchical_all_reduce(servers: Int64, size: int) -> Graph:
    """Reduce-scatter in servers, all-reduce of each part between them, all-gather in servers."""
    count, gpus = servers.shape
    inside = ring_rounds(servers, gpus - 1, _part(size, gpus))
    between = ring_rounds(servers.T, 2 * (count - 1), _part(size, servers.size))
    return of_rounds(inside + between + inside)


def _hierarchical_reduce_scatter(servers: Int64, size: int) -> Graph:
    count, gpus = servers.shape
    inside = ring_rounds(servers, gpus - 1, _part(size, gpus))
    return of_rounds(inside + ring_rounds(servers.T, count - 1, _part(size, servers.size)))


def _hierarchical_all_gather(servers: Int64, size: int) -> Graph:
    count, gpus = servers.shape
    between = ring_rounds(servers.T, count - 1, _part(size, servers.size))
    return of_rounds(between + ring_rounds(servers, gpus - 1, _part(size, gpus)))


def _ring_broadcast(servers: Int64, size: int) -> Graph:
    """Pass the bytes from each rank to the next; chunks are pipelined."""
    return of_rounds(chain_rounds(_row(servers), size))


def _recursive_broadcast(servers: Int64, size: int) -> Graph:
    """Scatter by halves, then all-gather by doubling (van de Geijn)."""
    count = _power_of_two(servers)
    scatter = []
    distance = count
    while distance > 1:
        has_it = np.arange(0, count, distance)
        distance //= 2
        scatter.append((has_it, has_it + distance, -(-size * distance // count)))

    return of_rounds(scatter + halving_rounds(count, size)[::-1], in_turn=True)


def _hierarchical_broadcast(servers: Int64, size: int) -> Graph:
    """From server to server by their first ranks, then along each server."""
    return of_rounds(chain_rounds(servers[:, :1].T, size) + chain_rounds(servers, size))


def direct_rounds(ranks: int, size: int) -> list[Round]:
    """Return one round in which each rank sends to all others at once, its successor first."""
    refuse_many(ranks * (ranks - 1))
    source = np.repeat(np.arange(ranks), ranks - 1)
    return [(source, (source + np.tile(np.arange(1, ranks), ranks)) % ranks, size)]


def _direct_all_reduce(servers: Int64, size: int) -> Graph:
    """Each rank's part to that rank, at once; then each reduced part to all others, at once."""
    return of_rounds(direct_rounds(servers.size, _part(size, servers.size)) * 2)


def _direct(servers: Int64, size: int) -> Graph:
    """Half of an all-reduce: a reduce-scatter or an all-gather alone."""
    return of_rounds(direct_rounds(servers.size, _part(size, servers.size)))


def _direct_all_to_all(servers: Int64, size: int) -> Graph:
    """Send all blocks at once."""
    return of_rounds(direct_rounds(servers.size, size))


def _ring_all_to_all(servers: Int64, size: int) -> Graph:
    """One destination after the other, all ranks at the same distance."""
    return of_rounds(shift_rounds(_row(servers), size))


def _recursive_all_to_all(servers: Int64, size: int) -> Graph:
    """Half of all blocks with the rank at half the distance, log2 n times."""
    count = _power_of_two(servers)
    me = np.arange(count)
    steps = range(1, count.bit_length())
    rounds = [(me, me ^ (count >> step), size * count // 2) for step in steps]
    return of_rounds(rounds, in_turn=True)


def _hierarchical_all_to_all(servers: Int64, size: int) -> Graph:
    """In servers, to the rank with the destination's place; then between those of one place."""
    count, gpus = servers.shape
    inside = shift_rounds(servers, size * count)
    return of_rounds(inside + shift_rounds(servers.T, size * gpus))


def parents(count: int) -> Int64:
    """Return the parent of each of `count` ranks in a binary tree in order, -1 for rank 0.

    A rank is as high as its number has zeros at the end, so that odd ranks are leaves: its parent
    is the neighbour at the distance of its lowest 1 bit that is a level higher, or the other
    neighbour where that does not exist.
    """
    rank = np.arange(count)
    low = rank & -rank
    up = np.where(rank & (low << 1), rank - low, rank + low)
    parent = np.where(up < count, up, rank - low)
    parent[0] = -1
    return parent


def two_trees(ranks: Int64) -> tuple[Int64, Int64]:
    """Return (ranks, parents), the latter of shape (2, ranks), of two trees (Sanders et al. 2009).

    The second is the first one seen from behind, or a rank further where that would make leaves
    leaves again: no rank has children in both. Roots have parent -1.
    """
    up = parents(len(ranks))
    moved = (
        np.arange(len(ranks))[::-1] if len(ranks) % 2 == 0 else np.roll(np.arange(len(ranks)), -1)
    )
    named = np.append(ranks, -1)
    trees = np.full((2, len(ranks)), -1, dtype=np.int64)
    trees[0] = named[up]
    trees[1, moved] = np.append(ranks[moved], -1)[up]
    return ranks, trees


def _tree_all_reduce(servers: Int64, size: int) -> Graph:
    """Send half of the buffer up and down each of two trees."""
    ranks, trees = two_trees(np.arange(servers.size))
    return joined([_up_and_down(ranks, up, _part(size, 2)) for up in trees])


def _tree_broadcast(servers: Int64, size: int) -> Graph:
    """From rank 0 half to the root of each of two trees over the others."""
    ranks, trees = two_trees(np.arange(1, servers.size))
    return joined([_down(ranks, np.where(up < 0, 0, up), _part(size, 2)) for up in trees])


def _incast(servers: Int64, size: int) -> Graph:
    """Send from all ranks to rank 0 at once."""
    senders = np.arange(1, servers.size)
    return transfers(senders, senders * 0, np.full(len(senders), size, dtype=np.int64))


def _down(ranks: Int64, parent: Int64, size: int) -> Graph:
    """Return transfers down a tree from rank 0; each rank sends when it has received."""
    graph = transfers(parent, ranks, np.full(len(ranks), size, dtype=np.int64))
    into = np.full(len(ranks) + 1, -1, dtype=np.int64)
    into[ranks] = np.arange(len(ranks))
    waits = np.flatnonzero(into[parent] >= 0)
    return replace(graph, waiting=waits, awaited=into[parent[waits]])


def _up_and_down(ranks: Int64, parent: Int64, size: int) -> Graph:
    """Return a reduction up a tree, each when all its children's are in, and the way back."""
    child = ranks[parent >= 0]
    over = parent[parent >= 0]
    count = len(child)
    upward = np.full(len(ranks), -1, dtype=np.int64)
    upward[child] = np.arange(count)
    graph = transfers(
        np.concatenate([child, over]),
        np.concatenate([over, child]),
        np.full(2 * count, size, dtype=np.int64),
    )

    # Up waits for the children's; at the root, down does; elsewhere down waits for down.
    inner = np.flatnonzero(upward[over] >= 0)
    top = np.flatnonzero(upward[over] < 0)
    waiting = [upward[over[inner]], np.repeat(top, len(top)) + count, inner + count]
    awaited = [inner, np.tile(top, len(top)), upward[over[inner]] + count]
    return replace(graph, waiting=np.concatenate(waiting), awaited=np.concatenate(awaited))


def _row(servers: Int64) -> Int64:
    return servers.reshape(1, -1)


def _part(size: int, parts: int) -> int:
    return -(-size // parts)


def _power_of_two(servers: Int64) -> int:
    if servers.size & (servers.size - 1):
        raise TrafficError(
            f'algorithm = "recursive" needs a power of two of hosts, not {servers.size}'
        )

    return servers.size


ALGORITHMS: dict[str, dict[str, Build]] = {
    "all_reduce": {
        "ring": _ring_all_reduce,
        "double_tree": _tree_all_reduce,
        "recursive": _recursive_all_reduce,
        "hierarchical": _hierarchical_all_reduce,
        "direct": _direct_all_reduce,
    },
    "reduce_scatter": {
        "ring": _ring,
        "recursive": _halving,
        "hierarchical": _hierarchical_reduce_scatter,
        "direct": _direct,
    },
    "all_gather": {
        "ring": _ring,
        "recursive": _doubling,
        "hierarchical": _hierarchical_all_gather,
        "direct": _direct,
    },
    "broadcast": {
        "ring": _ring_broadcast,
        "double_tree": _tree_broadcast,
        "recursive": _recursive_broadcast,
        "hierarchical": _hierarchical_broadcast,
    },
    "incast": {"direct": _incast},
    "all_to_all": {
        "direct": _direct_all_to_all,
        "ring": _ring_all_to_all,
        "recursive": _recursive_all_to_all,
        "hierarchical": _hierarchical_all_to_all,
    },
}
