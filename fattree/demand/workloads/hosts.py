"""Hosts by name or range, and which of them is which rank.

    hosts = "pod0, edge1_*, h2_0_1, h3_0-1_0"

A number may be `*` or a range; `pod` and `edge` name all hosts below them.
"""

import re

import numpy as np
from numpy.typing import NDArray

from fattree.demand.matrices import PLACEMENT, shuffle
from fattree.errors import TrafficError
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]
# How many coordinates (pod, edge, index) a name of each kind has.
KINDS = {"pod": 1, "edge": 2, "h": 3}
NAME = re.compile(
    r"(pod|edge|h)((?:\d{1,4}(?:-\d{1,4})?|\*)(?:_(?:\d{1,4}(?:-\d{1,4})?|\*))*)", re.A
)
EXAMPLE = 'expected names such as "pod0", "edge1_*" or "h2_0_0-3"'


def hosts_named(tree: FatTree, text: str) -> Int64:
    """Return the hosts of a list of names and ranges, in its order; all of them where it is empty.

    Raises TrafficError.
    """
    if not text.strip():
        return np.arange(tree.hosts)

    places = coordinates(tree)
    hosts = np.concatenate([_matching(tree, places, name.strip()) for name in text.split(",")])
    chosen, counts = np.unique(hosts, return_counts=True)
    if len(chosen) < len(hosts):
        pod, edge, index = places[chosen[counts > 1][0]]
        raise TrafficError(f"hosts = {text!r} names h{pod}_{edge}_{index} twice")

    return hosts


def coordinates(tree: FatTree) -> Int64:
    """Return (pod, edge, index) of every host, shape (hosts, 3)."""
    edge, index = np.divmod(np.arange(tree.hosts), tree.hosts_per_edge)
    return np.stack([*np.divmod(edge, tree.edges_per_pod), index], axis=1)


def _matching(tree: FatTree, places: Int64, name: str) -> Int64:
    parsed = NAME.fullmatch(name)
    parts = parsed[2].split("_") if parsed else []
    if not parsed or len(parts) != KINDS[parsed[1]]:
        raise TrafficError(f"hosts: {name!r} is no name of hosts: {EXAMPLE}")

    chosen = np.ones(len(places), dtype=np.bool_)
    for column, part in zip(places.T, parts, strict=False):
        low, _, high = part.partition("-")
        if part != "*":
            first, last = int(low), int(high or low)
            chosen &= (column >= first) & (column <= last)
            _refuse_missing(name, max(first, last), int(column.max()))

    if not chosen.any():
        raise TrafficError(f"hosts: {name!r} is the name of no host: {EXAMPLE}")

    return np.flatnonzero(chosen)


def _refuse_missing(name: str, asked: int, largest: int) -> None:
    # A range that is too long would else be cut short in silence.
    if asked > largest:
        raise TrafficError(f"hosts: {name!r} asks for {asked}, but the numbers end at {largest}")


def placed(hosts: Int64, placement: str, seed: int, gpus_per_server: int) -> Int64:
    """Return the host of each rank.

    In the order of `hosts`, at random, or by rail: the first GPUs of all servers side by side, then
    all second ones. Raises TrafficError.
    """
    match placement:
        case "random":
            return hosts[shuffle(seed, PLACEMENT, len(hosts))]
        case "rail":
            if gpus_per_server < 2 or len(hosts) % gpus_per_server:
                raise TrafficError(
                    'placement = "rail" needs a workload of whole servers with several GPUs each: '
                    f"these have {gpus_per_server}, and there are {len(hosts)} hosts"
                )

            by_rail: Int64 = hosts.reshape(gpus_per_server, -1).T.ravel()
            return by_rail
        case _:
            return hosts
