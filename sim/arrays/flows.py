"""Hosts and flows as arrays: who sends to whom, when, and the hashes of it."""

from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows as Traffic
from fattree.demand.flows import offsets
from fattree.errors import TrafficError
from fattree.experiment.model import Scenario
from fattree.files.memory import GIGABYTE, spare_bytes
from fattree.routes.demand import Demand
from fattree.shape.addressing import host_ip
from fattree.shape.topology import FatTree
from hostagent.rules import is_connected, rules
from hostagent.transports import go_back_n
from hostagent.transports.roce import ACK_BELOW, ETHERNET, OVERHEAD, ROCE_PORT, UDP_PROTOCOL
from hostagent.transports.state import NEVER, PACKET, RECEIVER, SENDER, Recovery
from hostagent.transports.transport import ring_length
from sim.arrays.routing import Pairs
from sim.kernels.records import ENDED, FLOW, HOST, Records, records
from sim.kernels.state import ACK, DATA, NO_SENDER, Flows, Int32, Int64, Pointers

UInt32 = NDArray[np.uint32]
# Of a packet in `Flows.arrivals` and `Flows.is_received`.
LOGGED_BYTES = 5


def hosts_of(tree: FatTree, flows: Traffic, is_drawing: bool) -> Records:
    """Return the hosts, with room for the flows that each sends.

    Where flows draw planes, behind the hosts each machine, with room for those of all its hosts.
    """
    hosts = records(tree.hosts + tree.machines * is_drawing, HOST)
    hosts.ready_ps = NEVER
    # Data come first, as if an ACK had just been sent.
    hosts.last_was_ack = 1
    hosts.timer_ps = NEVER
    # Hosts are numbered edge by edge, and are the lower ports of edges.
    edge, index = np.divmod(np.arange(tree.hosts), tree.hosts_per_edge)
    hosts.towards[: tree.hosts] = edge * len(tree.ports(0)) + index
    is_sent = flows.packets > 0
    for first, kind in (("heap_first", is_sent), ("timer_first", ~is_sent)):
        counts = np.bincount(flows.source[kind], minlength=tree.hosts)
        of_machines = counts.reshape(tree.planes, tree.machines).sum(axis=0)
        hosts[first] = offsets(np.concatenate([counts, of_machines]))[: len(hosts)]

    return hosts


def short_payloads(scenario: Scenario, flows: Traffic) -> list[int]:
    """Return the payloads of messages' last packets that are shorter than others, each once."""
    ends = np.unique(flows.last_bytes[flows.packets > 0])
    short: list[int] = ends[ends < scenario.packets.payload_bytes].tolist()
    return short


def flows_of(demand: Demand, pairs: Pairs, short: list[int]) -> Flows:
    """Return the flows, of which none has begun; `short` are those of `short_payloads`."""
    flows = demand.flows
    count = len(flows)
    table = _flow_table(demand, pairs, short)
    # Flows name those that they wait for; turned round, those that wait for each, in their order.
    followers = np.argsort(flows.after, kind="stable")
    waiting = np.repeat(np.arange(count), np.diff(flows.after_offset))
    of_hosts = rules(demand.scenario)
    logged = int(flows.packets.sum()) if of_hosts.recovery == Recovery.SACK else 0
    _refuse_log(logged)
    in_order = count if of_hosts.recovery == Recovery.GO_BACK_N else 0
    told = len(pairs.source) if of_hosts.tells_share else 0

    senders, sender_of, spare_senders, spares = _senders(demand.scenario, flows)
    ended = records(count, ENDED)
    ended.first_ps = ended.done_ps = NEVER
    return Flows(
        table=table,
        senders=senders,
        sender_of=sender_of,
        spare_senders=spare_senders,
        spares=spares,
        ended=ended,
        outstanding=records(int(table.ring_length.sum()), PACKET),
        ready_ps=np.full(count, NEVER, dtype=np.int64),
        place=np.zeros(count, dtype=np.int32),
        received=np.zeros(count, dtype=np.int32),
        reported=np.zeros(count, dtype=np.int32),
        waiting=np.zeros(count, dtype=np.int32),
        receivers=records(in_order, RECEIVER),
        kept=np.zeros((in_order, go_back_n.reach(of_hosts)), dtype=np.uint8),
        blocked=np.diff(flows.after_offset).astype(np.int32),
        follower_offset=offsets(np.bincount(flows.after, minlength=count)),
        followers=waiting[followers],
        started_ps=np.full(count, NEVER, dtype=np.int64),
        arrivals=np.zeros(logged, dtype=np.int32),
        is_received=np.zeros(logged, dtype=np.uint8),
        told=np.zeros(told, dtype=np.int32),
        told_ps=np.full(told, NEVER, dtype=np.int64),
        heap_of=flows.source.astype(np.int32)
        if demand.scenario.fabric.is_drawn
        else np.zeros(0, np.int32),
    )


def _senders(scenario: Scenario, flows: Traffic) -> tuple[Records, Int32, Int32, Int32]:
    """Return the senders of `Flows`, the flows' numbers of them, and the spare numbers."""
    count = len(flows)
    if is_connected(scenario):
        senders = records(count, SENDER)
        # A connection draws labels as its first message, which may start after others.
        senders.flow = np.arange(count)
        nothing = np.zeros(0, dtype=np.int32)
        return senders, np.arange(count, dtype=np.int32), nothing, nothing

    is_sent = flows.packets > 0
    spares = np.bincount(flows.source[is_sent], minlength=scenario.tree.hosts)
    first = offsets(spares)
    entry = np.arange(first[-1])
    # The lowest numbers are the first of all hosts, then come the second of all. Hosts take low
    # numbers first: only as many records are touched as flows are under way at a time.
    number = np.empty(len(entry), dtype=np.int32)
    number[np.argsort(entry - np.repeat(first[:-1], spares), kind="stable")] = entry
    return (
        records(len(entry), SENDER),
        np.full(count, NO_SENDER, dtype=np.int32),
        number[np.repeat(first[:-1] + first[1:] - 1, spares) - entry],
        spares.astype(np.int32),
    )


def _refuse_log(packets: int) -> None:
    """Raise TrafficError where this machine has no memory to note each packet that arrives."""
    needed = packets * LOGGED_BYTES
    spare = spare_bytes()
    if spare is not None and needed > spare:
        raise TrafficError(
            f'transport.recovery = "sack": receivers note each of {packets:,} packets, which takes'
            f" {needed / GIGABYTE:.1f} GB of memory, and {spare / GIGABYTE:.1f} GB are free for it"
        )


def _flow_table(demand: Demand, pairs: Pairs, short: list[int]) -> Records:
    scenario, flows, gaps = demand.scenario, demand.flows, demand.gaps_ps
    tree = scenario.tree
    table = records(len(flows), FLOW)
    table.source = flows.source
    table.destination = flows.destination
    table.packets = flows.packets
    table.source_pod, table.source_edge, table.source_index = _coordinates(tree, flows.source)
    table.pod, table.edge, table.index = _coordinates(tree, flows.destination)
    table.hops = demand.hops
    table.gap_ps = gaps
    table.phase_ps = demand.phases_ps
    table.compute_ps = flows.compute_ps
    table.in_turn = flows.in_turn if scenario.is_shared_actively else 0
    table.pair = pairs.of_flow
    table.connection = _connections(scenario, pairs)
    table.hash_data, table.hash_ack = _flow_hashes(tree, flows)
    table.ring_length = _ring_lengths(scenario, flows.packets, gaps)
    table.ring = offsets(table.ring_length)[:-1]
    table.log = offsets(flows.packets)[:-1]
    # Sizes are numbered as in `sim.arrays.wiring.passages_of`.
    is_short = (flows.packets > 0) & (flows.last_bytes < scenario.packets.payload_bytes)
    table.last_size = np.where(is_short, ACK + 1 + np.searchsorted(short, flows.last_bytes), DATA)
    total = flows.last_bytes + OVERHEAD - ETHERNET
    table.last_class = np.where(is_short & (total < ACK_BELOW), ACK, DATA)

    return table


def _connections(scenario: Scenario, pairs: Pairs) -> Int64:
    """Return the first flow of each flow's connection."""
    if not is_connected(scenario):
        return np.arange(len(pairs.of_flow))

    _, first = np.unique(pairs.of_flow, return_index=True)
    return first[pairs.of_flow]


def _coordinates(tree: FatTree, hosts: Int64) -> tuple[Int64, Int64, Int64]:
    edge, index = np.divmod(hosts, tree.hosts_per_edge)
    pod, position = np.divmod(edge, tree.edges_per_pod)
    return pod, position, index


def _ring_lengths(scenario: Scenario, packets: Int64, gaps: Int64) -> Int64:
    # An all-to-all has millions of flows and few kinds. Numbers of sizes and gaps are sorted in a
    # tenth of the time of pairs.
    shared = rules(scenario)
    sizes, size_of = np.unique(packets, return_inverse=True)
    steps, step_of = np.unique(gaps, return_inverse=True)
    kinds, of_flow = np.unique(size_of * len(steps) + step_of, return_inverse=True)
    kind_sizes, kind_steps = np.divmod(kinds, max(1, len(steps)))
    lengths = [
        ring_length(shared, packets_of, gap_ps)
        for packets_of, gap_ps in zip(
            sizes[kind_sizes].tolist(), steps[kind_steps].tolist(), strict=True
        )
    ]
    return np.array(lengths, dtype=np.int64)[of_flow]


def _five_tuple_hash(source: int, destination: int, label: int) -> int:
    """Return the CRC of a five-tuple, field after field as in `ecmp.p4`."""
    addresses = source.to_bytes(4, "big") + destination.to_bytes(4, "big") + bytes([UDP_PROTOCOL])
    return crc32(addresses + label.to_bytes(2, "big") + ROCE_PORT.to_bytes(2, "big"))


def _flow_hashes(tree: FatTree, flows: Traffic) -> tuple[UInt32, UInt32]:
    """Return the hash of every flow's data packets and of its ACKs, at label 0.

    CRCs are affine: crc(a, b) = crc(a, 0) ^ crc(0, b) ^ crc(0, 0), so hosts are enough, not pairs.
    """
    nothing = _five_tuple_hash(0, 0, 0)
    ips = [host_ip(tree, host) for host in range(tree.hosts)]
    as_source = np.array([_five_tuple_hash(ip, 0, 0) for ip in ips], dtype=np.uint32)
    as_destination = np.array([_five_tuple_hash(0, ip, 0) ^ nothing for ip in ips], dtype=np.uint32)
    data = as_source[flows.source] ^ as_destination[flows.destination]

    return data, as_source[flows.destination] ^ as_destination[flows.source]


@cache
def label_hashes() -> tuple[UInt32, UInt32]:
    """Return the XORs of a label's low and high byte in the hash, shape (256,) each."""
    nothing = _five_tuple_hash(0, 0, 0)
    low, high = (
        [_five_tuple_hash(0, 0, byte << shift) ^ nothing for byte in range(256)] for shift in (0, 8)
    )
    return np.array(low, dtype=np.uint32), np.array(high, dtype=np.uint32)


def pointers_of(cells: int, pairs: Pairs) -> Pointers:
    """Return the pointers of switches (cells) and of pairs of hosts, all at their start."""
    return Pointers(
        cells=np.zeros(cells, dtype=np.int32),
        orders=np.zeros(cells, dtype=np.uint8),
        wraps=np.zeros(cells, dtype=np.uint8),
        host_cells=np.zeros((len(pairs.source), 2), dtype=np.int32),
    )
