"""The traffic matrices: who sends to whom in permutations, all-to-alls, rings and FSDP.

Random matrices follow from the seed alone, so that load balancers are compared on the same traffic.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, Message, independent, offsets
from fattree.draws import Stream, below, component, mix
from fattree.errors import TrafficError
from fattree.experiment.collective import SHARD_KEYS
from fattree.experiment.model import Collective
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]

# An all-to-all of 5,793 hosts; the arrays then take gigabytes.
MAX_FLOWS = 1 << 25

# Streams of the matrix beyond any that `derangement`'s attempts reach.
SWAPS = 1 << 20
PLACEMENT = 1 << 21

# The paper's "Training Scenario": packets a layer and GPU, with FSDP over 1,024 GPUs.
PRESET_PACKETS = {"llama-7b": 104, "llama-70b": 418, "llama-405b": 1570}
PRESET_GPUS = 1024
PRESET_PAYLOAD_BYTES = 4096
BYTES_PER_PARAMETER = 2
PARAMETERS_PER_HIDDEN_SQUARE = 12


def shuffle(seed: int, stream: int, count: int) -> Int64:
    """Return a random order of 0 .. count - 1, from the seed's matrix stream of that index."""
    # Sorting random keys of 63 bits, two draws each: two keys are as good as never equal, so all
    # orders are equally likely, where 32 bits would tie among 65,536 hosts.
    name = component(Stream.MATRIX, stream)
    numbers = 2 * np.arange(count)
    keys = mix(seed, name, numbers) << 31 | mix(seed, name, numbers + 1) >> 1

    return np.argsort(keys, kind="stable")


def derangement(seed: int, count: int) -> Int64:
    """Return a uniformly random permutation without fixed points."""
    # A random permutation has none with probability 1 / e: about three attempts. Mending a
    # permutation with fixed points would not be uniform.
    attempt = 0
    while ((order := shuffle(seed, attempt, count)) == np.arange(count)).any():
        attempt += 1

    return order


def inter_pod_permutation(tree: FatTree, seed: int) -> Int64:
    """Return a random permutation in which every destination is in another pod than its source.

    A pair inside a pod swaps destinations with a random pair if both then leave their pods; such a
    pair always exists.
    """
    refuse_one_pod(tree)
    order = shuffle(seed, 0, tree.hosts)
    pod = tree.hosts_per_pod
    draws = 0

    for host in np.flatnonzero(order // pod == np.arange(tree.hosts) // pod):
        while order[host] // pod == host // pod:
            partner = below(mix(seed, component(Stream.MATRIX, SWAPS), draws), tree.hosts)
            draws += 1
            if order[partner] // pod != host // pod and order[host] // pod != partner // pod:
                order[host], order[partner] = order[partner], order[host]

    return order


def refuse_one_pod(tree: FatTree) -> None:
    """Raise TrafficError where there is no other pod to send to."""
    if tree.pods == 1:
        raise TrafficError(f"an inter-pod permutation needs pods: {tree.label} has one")


def all_to_all(hosts: int) -> tuple[Int64, Int64]:
    """Return sources and destinations, host by host, each's destinations from its successor on."""
    refuse_too_many(hosts * (hosts - 1))
    source = np.repeat(np.arange(hosts), hosts - 1)
    return source, (source + np.tile(np.arange(1, hosts), hosts)) % hosts


def ring(hosts: int, steps: int | None, message: Message) -> Flows:
    """Return `steps` chained steps of host i sending to host i + 1.

    Hosts - 1 of them, a whole exchange, by default.
    """
    return chained(np.roll(np.arange(hosts), -1), steps or hosts - 1, message)


def hierarchical_ring(
    tree: FatTree,
    servers: Int64,
    servers_per_ring: int | None,
    steps: int | None,
    message: Message,
) -> Flows:
    """Return parallel rings over servers, a ring for each host of an edge.

    An edge's hosts are a server, and its host i sends to host i of the next server. `servers`
    (edges,) is the order of the edges along the rings, each of `servers_per_ring` servers (all by
    default).
    """
    size = servers_per_ring or tree.edges
    if tree.edges % size:
        raise TrafficError(
            f"servers_per_ring {size} does not divide "
            f"the {tree.edges} servers (edge switches) of {tree.label}"
        )

    following = np.empty(tree.edges, dtype=np.int64)
    following[servers] = np.roll(servers.reshape(-1, size), -1, axis=1).ravel()
    hosts = np.arange(tree.hosts_per_edge)
    successor = (following[:, None] * tree.hosts_per_edge + hosts).ravel()

    return chained(successor, steps or size - 1, message)


def chained(successor: Int64, steps: int, message: Message) -> Flows:
    """Repeat host -> successor[host].

    A step waits for the host's own step before and for the flow that arrives there.
    """
    # Flow step * hosts + host. The flow that arrives at a host in a step is its predecessor's, and
    # the inverse of a permutation is its argsort. Both awaited flows end or begin at the host.
    hosts = len(successor)
    total = refuse_too_many(hosts * steps)
    before = np.stack([np.arange(hosts), np.argsort(successor)], axis=1)
    after = np.arange(steps - 1)[:, None, None] * hosts + before

    return Flows(
        source=np.tile(np.arange(hosts), steps),
        destination=np.tile(successor, steps),
        packets=np.full(total, message.packets, dtype=np.int64),
        last_bytes=np.full(total, message.last_bytes, dtype=np.int64),
        start_ps=np.zeros(total, dtype=np.int64),
        after_offset=offsets(np.repeat([0, 2], [hosts, total - hosts])),
        after=after.ravel(),
        compute_ps=np.zeros(total, dtype=np.int64),
        share=np.zeros(total, dtype=np.int64),
        in_turn=np.zeros(total, dtype=np.int64),
    )


def pairs(tree: FatTree, requested: tuple[tuple[int, int], ...]) -> tuple[Int64, Int64]:
    """Return the sources and destinations of listed pairs of hosts; raises TrafficError."""
    if not requested:
        raise TrafficError(
            "matrix pairs needs collective.pairs, for example pairs = [[0, 15], [15, 0]]"
        )

    for number, (source, destination) in enumerate(requested):
        asked = f"collective.pairs[{number}] is [{source}, {destination}]"
        if not (0 <= source < tree.hosts and 0 <= destination < tree.hosts):
            raise TrafficError(f"{asked}: {tree.label} has hosts 0 to {tree.hosts - 1}")
        if source == destination:
            raise TrafficError(f"{asked}: a host cannot send to itself")

    sources, destinations = np.array(requested, dtype=np.int64).T
    return sources.copy(), destinations.copy()


def shard_bytes(collective: Collective, gpus: int) -> int:
    """Return the bytes of one FSDP ring step: a layer's parameters, 2 bytes each, over the GPUs.

    A preset's layer is the paper's packet count times its 1,024 GPUs; else parameters / layers,
    else the usual 12 hidden_size**2 of a transformer layer (attention 4, feed-forward 8).
    """
    keys = tuple(key for key in SHARD_KEYS if getattr(collective, key) is not None)
    if keys not in (("model",), ("parameters", "layers"), ("hidden_size",)):
        raise TrafficError(
            "matrix fsdp needs collective.model, or parameters and layers, or hidden_size"
            + (f", and not {' and '.join(keys)}" if keys else "")
        )

    if collective.model:
        layer = PRESET_PACKETS[collective.model] * PRESET_PAYLOAD_BYTES * PRESET_GPUS
    elif collective.parameters and collective.layers:
        layer = BYTES_PER_PARAMETER * collective.parameters // collective.layers
    else:
        assert collective.hidden_size
        layer = BYTES_PER_PARAMETER * PARAMETERS_PER_HIDDEN_SQUARE * collective.hidden_size**2

    return -(-layer // gpus)


def uniform(source: Int64, destination: Int64, message: Message) -> Flows:
    """Return independent flows of one size that start together."""
    return independent(
        source,
        destination,
        np.full(len(source), message.packets, dtype=np.int64),
        np.full(len(source), message.last_bytes, dtype=np.int64),
        np.zeros(len(source), dtype=np.int64),
    )


def refuse_too_many(count: int) -> int:
    """Return the number of flows; raises TrafficError where they would take too much memory."""
    if count > MAX_FLOWS:
        raise TrafficError(
            f"this collective has {count:,} flows, more than {MAX_FLOWS:,}: "
            "take fewer hosts or steps"
        )

    return count
