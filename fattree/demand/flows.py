"""The flows of a run as arrays, and the order of flows that wait for others.

A flow is an index; it starts at `start_ps`, or when the flows in `after` are complete. `after`
names only flows that begin or end at the same machine (a host, or its NICs in all planes), so that
hosts need no global knowledge (design, decision 9). A flow without packets is a computation:
nothing is sent, time passes at its host.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fattree.errors import TrafficError
from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]
# A number, or an array of them.
Number = TypeVar("Number", int, Int64)


class Message(NamedTuple):
    """The message of every flow of a collective: so many packets, the last with `last_bytes`."""

    packets: int
    last_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """All flows of a run, as int64 arrays of one length.

    A flow's packets have full payloads, but for the last packet, which has `last_bytes`: the rest
    of the message (0 for computations). The flows that a flow waits for are a CSR: flow f waits for
    after[after_offset[f]:after_offset[f + 1]]. A computation has no packets, its host at both ends,
    and takes `compute_ps` (0 for all others). `share` is among how many flows a host's rate is
    shared where shares are for life, and the share for reckoning with failures (0: as
    `traffic.shares` counts). A flow `in_turn` (0 or 1) leaves as a whole before flows that begin at
    its host later, where hosts share their rate among active flows.
    """

    source: Int64
    destination: Int64
    packets: Int64
    last_bytes: Int64
    start_ps: Int64
    after_offset: Int64
    after: Int64
    compute_ps: Int64
    share: Int64
    in_turn: Int64

    def __len__(self) -> int:
        return len(self.source)

    def message_bytes(self, payload_bytes: int) -> Int64:
        """Return the bytes of each flow, if full packets have `payload_bytes`."""
        sent: Int64 = np.maximum(self.packets - 1, 0) * payload_bytes + self.last_bytes
        return sent

    def waits_for(self, flow: int) -> Int64:
        """Return the flows that must be complete before this one starts."""
        return self.after[self.after_offset[flow] : self.after_offset[flow + 1]]

    def longest_ps(self, done_ps: Int64) -> int:
        """Return the collective completion time: the longest from a flow's start to its end.

        Completion is at the sender, the start is the scenario's (decision 6): a flow that waits for
        others has begun with the collective.
        """
        return int((done_ps - self.start_ps).max())

    def longest_sending_ps(self, first_ps: Int64, done_ps: Int64) -> int:
        """Return the longest time from a flow's first packet, which left at `first_ps`, to its end.

        A host's flows start at random phases of up to a gap, and in an all-to-all a gap is long. A
        flow that waits for others is counted from the start all the same: its wait is the
        collective's.
        """
        waits = np.diff(self.after_offset) > 0
        return int((done_ps - np.where(waits, self.start_ps, first_ps)).max())


def cut(size: Number, payload_bytes: int) -> tuple[Number, Number]:
    """Return how many packets messages of `size` bytes have, and the bytes of the last of each."""
    # In integers: -(-a // b) is a divided by b, rounded up. Nothing has no packets.
    packets = -(-size // payload_bytes)
    return packets, size - (packets - (packets > 0)) * payload_bytes


def parted(size: Int64, parts: int, payload_bytes: int) -> tuple[Int64, Int64]:
    """Return the packets and last bytes of every part of messages, in rows of `parts`.

    Parts differ by a byte at most. Each part of a message that is sent has at least one.
    """
    more = np.arange(parts) < (size % parts)[:, None]
    least = (size > 0).astype(np.int64)[:, None]
    packets, last_bytes = cut(np.maximum((size // parts)[:, None] + more, least), payload_bytes)
    return packets.ravel(), last_bytes.ravel()


def independent(
    source: Int64, destination: Int64, packets: Int64, last_bytes: Int64, start_ps: Int64
) -> Flows:
    """Return flows that wait for no other."""
    return Flows(
        source,
        destination,
        packets,
        last_bytes,
        start_ps=start_ps,
        after_offset=np.zeros(len(source) + 1, dtype=np.int64),
        after=np.empty(0, dtype=np.int64),
        compute_ps=np.zeros(len(source), dtype=np.int64),
        share=np.zeros(len(source), dtype=np.int64),
        in_turn=np.zeros(len(source), dtype=np.int64),
    )


def offsets(lengths: Int64) -> Int64:
    """Return the CSR offsets of rows of these lengths."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def entries(offset: Int64, rows: Int64) -> Int64:
    """Return the positions of all entries of some CSR rows, one row after the other."""
    # Counted through, an entry is its row's offset further on, less where the row begins here.
    lengths = offset[rows + 1] - offset[rows]
    return np.repeat(offset[rows] - offsets(lengths)[:-1], lengths) + np.arange(lengths.sum())


def split(whole: Flows, parts: int, payload_bytes: int) -> Flows:
    """Split every flow into `parts` consecutive ones, which share its bytes.

    A waiting flow waits for all parts.
    """
    if parts == 1:
        return whole

    # Part p of flow f is flow f * parts + p, so the parts of an awaited flow are numbered likewise.
    flow = np.repeat(np.arange(len(whole)), parts)
    after = whole.after[entries(whole.after_offset, flow)]
    packets, last_bytes = parted(whole.message_bytes(payload_bytes), parts, payload_bytes)
    return Flows(
        source=whole.source[flow],
        destination=whole.destination[flow],
        packets=packets,
        last_bytes=last_bytes,
        start_ps=whole.start_ps[flow],
        after_offset=offsets(np.diff(whole.after_offset)[flow] * parts),
        after=(after[:, None] * parts + np.arange(parts)).ravel(),
        # The parts of a computation run side by side, so that it takes as long as it did.
        compute_ps=whole.compute_ps[flow],
        share=whole.share[flow] * parts,
        # Parts of one message leave side by side.
        in_turn=np.zeros(len(flow), dtype=np.int64),
    )


def generations(tree: FatTree, flows: Flows) -> Int64:
    """Return how many flows must finish one after the other before each flow starts.

    Raises TrafficError where flows wait for each other in a circle, or for a flow between other
    hosts.
    """
    refuse_remote(tree, flows)
    return depths(flows.after_offset, flows.after)


def depths(after_offset: Int64, after: Int64) -> Int64:
    """Return the generations of nodes that wait by a CSR; raises TrafficError for circles."""
    # Kahn's topological sort, a generation at a time. `followers` is the transpose of `after`.
    count = len(after_offset) - 1
    waits = np.diff(after_offset)
    followers = np.repeat(np.arange(count), waits)[np.argsort(after, kind="stable")]
    offset = offsets(np.bincount(after, minlength=count))
    generation = np.zeros(count, dtype=np.int64)
    current = 0
    ready = np.flatnonzero(waits == 0)

    while len(ready):
        generation[ready] = current
        current = current + 1

        # A flow is ready when the last that it waits for is: its generation is the longest chain.
        released, times = np.unique(followers[entries(offset, ready)], return_counts=True)
        waits[released] -= times
        ready = released[waits[released] == 0]

    if waits.any():
        raise TrafficError(
            f"flow {int(np.flatnonzero(waits)[0])} never starts: "
            "the flows it waits for wait in a circle"
        )

    return generation


def in_generations(generation: Int64) -> list[Int64]:
    """Return the flows of each generation, in order."""
    order = np.argsort(generation, kind="stable")
    return np.split(order, np.cumsum(np.bincount(generation))[:-1])


def chain_ends(
    flows: Flows, generation: Int64, machines: int, at_source: Int64, at_destination: Int64
) -> Int64:
    """Return each flow's end if it takes `at_source` after its host knows that its waits are over.

    A machine knows that a flow of its own is done after `at_source`, but a flow to it after
    `at_destination`.
    """
    # By generations, so the flows that a flow waits for have their begin already.
    begins = flows.start_ps.copy()
    waits = np.diff(flows.after_offset)
    for chosen in in_generations(generation)[1:]:
        waiting = np.repeat(chosen, waits[chosen])
        awaited = flows.after[entries(flows.after_offset, chosen)]
        is_own = (flows.source[awaited] - flows.source[waiting]) % machines == 0
        known_ps = np.where(is_own, at_source[awaited], at_destination[awaited])
        np.maximum.at(begins, waiting, begins[awaited] + known_ps)

    ends: Int64 = begins + at_source
    return ends


def longest_computation_ps(tree: FatTree, flows: Flows) -> int:
    """Return how long all would take if packets took no time: the longest chain of computations."""
    if not flows.compute_ps.any():
        return 0

    ends = chain_ends(
        flows,
        generations(tree, flows),
        machines=tree.machines,
        at_source=flows.compute_ps,
        at_destination=flows.compute_ps,
    )
    return int((ends - flows.start_ps).max(initial=0))


def refuse_remote(tree: FatTree, flows: Flows) -> None:
    """Raise TrafficError where a flow waits for one between other machines."""
    waiting = np.repeat(np.arange(len(flows)), np.diff(flows.after_offset))
    awaited = flows.after
    source, destination = (ends % tree.machines for ends in (flows.source, flows.destination))
    here = source[waiting]
    remote = np.flatnonzero((source[awaited] != here) & (destination[awaited] != here))

    if not len(remote):
        return

    flow = int(waiting[remote[0]])
    awaited_flow = int(awaited[remote[0]])
    ends = " to ".join(
        host_name(tree, int(end[awaited_flow])) for end in (flows.source, flows.destination)
    )
    raise TrafficError(
        f"flow {flow} starts at {host_name(tree, int(flows.source[flow]))}, "
        f"which cannot know when flow {awaited_flow} from {ends} is complete"
    )


def path_links(tree: FatTree, flows: Flows) -> Int64:
    """Return the links of each flow's path: 2 below an edge, 4 within a pod, 6 through a core."""
    same_edge = flows.source // tree.hosts_per_edge == flows.destination // tree.hosts_per_edge
    same_pod = flows.source // tree.hosts_per_pod == flows.destination // tree.hosts_per_pod
    links: Int64 = 6 - 2 * same_pod.astype(np.int64) - 2 * same_edge

    return links
