"""From a scenario to the arrays that kernels run on: links, nodes, flows, pointers, routes."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fattree import traffic
from fattree.addressing import host_ip
from fattree.draws import Stream, component, mix
from fattree.errors import ExperimentError
from fattree.experiment import Scenario
from fattree.failures import Timeline, loss_thresholds, timeline
from fattree.flows import Flows as Traffic
from fattree.flows import offsets, path_links
from fattree.forwarding import LEVELS, Forwarding, scenario_forwarding
from fattree.local_repair import repaired
from fattree.policies import Chooser
from fattree.rates import rho_max
from fattree.southbound import agg_bundles, core_bundles
from fattree.topology import FatTree, Level, Tier
from fattree.waypoints import starts, waypoints
from fattree.wecmp import LinkState
from hostagent.roce import ROCE_PORT, UDP_PROTOCOL
from hostagent.rules import rules
from hostagent.state import NEVER, PACKET, SENDER, Recovery, Rules
from hostagent.transport import ring_length
from sim.host_rule_code import compiled
from sim.state import (
    CHUNK,
    CHUNK_BITS,
    COUNTERS,
    FLOW,
    HEADER,
    HOST,
    LEDGER,
    LINK,
    SPARE,
    SWITCH,
    TRANSIT,
    UNFINISHED,
    Constants,
    Flows,
    Int64,
    OwnRule,
    Pointers,
    Pool,
    Records,
    Routes,
    World,
    records,
)

# These compare uplinks, so they look weights up; to the others a schedule's repetitions are enough.
WEIGHED = (Chooser.SHORTEST, Chooser.BINNED, Chooser.ROTATION_SHORTEST_START)
# The time within a window has 20 bits in a key (`sim.switches`). A shorter window is always right.
LONGEST_WINDOW_PS = 1 << 20
UInt32 = NDArray[np.uint32]


class Epoch(NamedTuple):
    """From `time_ps` on, these routes hold."""

    time_ps: int
    routes: Routes


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What a run needs: the world at time 0, and the routes in order, the first from time 0 on."""

    scenario: Scenario
    flows: Traffic
    world: World
    routes: tuple[Epoch, ...]
    events: Timeline


def build(scenario: Scenario) -> Network:
    """Return the arrays of a scenario.

    Raises FabricError where it asks for what cannot be built.
    """
    _refuse_unsupported(scenario)
    flows = traffic.flows(scenario)
    events = timeline(scenario, flows)
    pairs = _Pairs.of(scenario.tree, flows)
    states = list(phases(scenario, events))
    tables = [forwarding(scenario, phase) for phase in states]
    # Pointers stay when routes change, so a switch has cells for the most groups that it ever has.
    groups = np.max([np.diff(table.first_group) for table in tables], axis=0)
    epochs = tuple(
        Epoch(phase.time_ps, _routes(scenario, table, phase.routed, pairs))
        for table, phase in zip(tables, states, strict=True)
    )

    world = _world(
        scenario,
        flows,
        events,
        pairs,
        constants=_constants(scenario),
        switches=_switches(scenario, tables[0], groups),
        cells=int(2 * groups.sum()),
    )
    return Network(
        scenario,
        flows,
        world,
        routes=epochs,
        events=events,
    )


def build_for_program(scenario: Scenario) -> Network:
    """Return the arrays of a scenario whose switches run a program: hosts, links, and no choices.

    Only Host DR's hosts have routes (`waypoint_routes`): the switches' are in their tables. Raises
    FabricError.
    """
    flows = traffic.flows(scenario)
    events = timeline(scenario, flows)
    pairs = _Pairs.of(scenario.tree, flows)
    # A packet's departure is an event at its switch, so only the link's latency lies between two.
    constants = _constants(scenario)
    constants = constants._replace(window_ps=min(*scenario.latencies_ps, LONGEST_WINDOW_PS))
    switches = placed_switches(scenario.tree)
    links = LinkState.without(scenario.tree, events.first_routes)
    routes = waypoint_routes(scenario, flows, links)

    return Network(
        scenario,
        flows,
        _world(scenario, flows, events, pairs, constants=constants, switches=switches, cells=0),
        routes=(Epoch(0, routes),),
        events=events,
    )


def waypoint_routes(scenario: Scenario, flows: Traffic, links: LinkState) -> Routes:
    """Return the routes of Host DR's hosts for a state of the links; of other schemes, none."""
    row, start, offset, steps = _waypoints(scenario, links, _Pairs.of(scenario.tree, flows))
    empty = np.zeros(0, dtype=np.int64)

    return Routes(
        groups=empty.astype(np.int32),
        first_group=empty,
        group_schedule=empty,
        group_start=np.zeros((0, 2), dtype=np.int32),
        schedule_offset=empty,
        slots=empty.astype(np.uint8),
        weights=np.zeros((0, scenario.tree.most_uplinks), dtype=np.uint8),
        waypoint_row=row,
        waypoint_start=start,
        waypoint_offset=offset,
        waypoints=steps,
        agg_members=np.zeros((0, 1), dtype=np.uint8),
        agg_counts=empty.astype(np.int32),
        core_members=np.zeros((0, 1), dtype=np.uint8),
        core_counts=empty.astype(np.int32),
    )


def _refuse_unsupported(scenario: Scenario) -> None:
    """Raise ExperimentError for what the kernels do not do.

    That is P4, and a controller that has to find out about links by itself: here, routes follow
    every change of a link after G.
    """
    if scenario.program is not None:
        raise ExperimentError(
            "program: the kernels run no P4 (ofan sim run --program, emulation.virtual.simulated)"
        )

    controller = scenario.controller
    if controller.detection != "announced":
        raise ExperimentError(
            f'controller.detection = "{controller.detection}": the simulator knows "announced" only'
        )

    if controller.damping_half_life_us is not None:
        raise ExperimentError(
            "controller.damping_half_life_us: the simulator damps no flaps "
            "(--network virtual or mininet)"
        )


class Phase(NamedTuple):
    """From `time_ps` on switches route for the state `routed`.

    With local repair they leave their own links that are not `up`.
    """

    time_ps: int
    routed: LinkState
    up: LinkState


def phases(scenario: Scenario, events: Timeline) -> Iterator[Phase]:
    """Yield the states of the links that switches route for, in order."""
    tree = scenario.tree
    is_local = scenario.failures.local_repair
    routed = events.first_routes
    failed = frozenset[int]()
    route_changes = {change.time_ps: change.failed for change in events.routes}
    # Without local repair a link's state changes no route before G has passed.
    link_changes = {change.time_ps: change for change in events.changes} if is_local else {}

    for time_ps in sorted({0, *route_changes, *link_changes}):
        routed = route_changes.get(time_ps, routed)
        if time_ps in link_changes:
            failed = failed - link_changes[time_ps].up | link_changes[time_ps].down

        yield Phase(time_ps, LinkState.without(tree, routed), LinkState.without(tree, failed))


def forwarding(scenario: Scenario, phase: Phase) -> Forwarding:
    """Return what switches do from a phase's time on."""
    table = scenario_forwarding(scenario, phase.routed)
    return repaired(table, phase.up) if scenario.failures.local_repair else table


def _world(
    scenario: Scenario,
    flows: Traffic,
    events: Timeline,
    pairs: "_Pairs",
    *,
    constants: Constants,
    switches: Records,
    cells: int,
) -> World:
    tree = scenario.tree
    counters = np.zeros(COUNTERS, dtype=np.int64)
    counters[UNFINISHED] = len(flows)

    # A list for each port, each host's link and each host's ACKs, with a chunk to begin with.
    ports = tree.first_port(tree.switches)
    lists = ports + 2 * tree.hosts
    pool = grown(None, lists + _likely_chunks(scenario, flows, lists), counters)
    counters[SPARE] -= lists
    links = _links(tree)
    hosts = _hosts(tree, flows)
    ledgers = records(len(links), LEDGER)
    _place_losses(scenario, ledgers)
    place_lists(pool, links, hosts, ports)
    low, high = _label_hashes()
    shared = rules(scenario)

    # Hosts know the failures there are at the start; timed ones do not change their pace.
    rho = rho_max(tree, LinkState.without(tree, events.down_at_start), flows, scenario.speeds)

    columns = _flows(scenario, flows, traffic.gaps(scenario, flows, rho), pairs)

    return World(
        constants=constants,
        rules=shared,
        own=_own_rule(scenario, shared, columns),
        pool=pool,
        links=links,
        ledgers=ledgers,
        inputs=_inputs(tree),
        outages=_place_outages(tree, events, links, ledgers),
        switches=switches,
        hosts=hosts,
        heap=np.zeros(int((flows.packets > 0).sum()), dtype=np.int32),
        timers=np.zeros(int((flows.packets == 0).sum()), dtype=np.int32),
        flows=columns,
        pointers=_pointers(cells, pairs),
        hash_low=low,
        hash_high=high,
        counters=counters,
    )


def _own_rule(scenario: Scenario, shared: Rules, flows: Flows) -> OwnRule:
    """Return the scenario's host rule, if it has one, compiled; raises ExperimentError."""
    rule = scenario.host_rule
    if rule is None:
        return OwnRule(0, 0, 0, 0, 0, 0, 0, memory=np.zeros(0, dtype=np.uint8))

    made = compiled(rule.text, rule.file)
    head = len(shared) * 8
    memory = np.zeros(head + len(flows.senders) * made.state.itemsize, dtype=np.uint8)
    memory[:head].view(np.int64)[:] = shared
    memory[head:].view(made.state)[:] = made.first
    at = memory.ctypes.data

    return OwnRule(
        next_label=made.next_label.address,
        on_ack=made.on_ack.address,
        states_at=at + head,
        state_bytes=made.state.itemsize,
        senders_at=flows.senders.ctypes.data,
        packets_at=flows.outstanding.ctypes.data,
        rules_at=at,
        memory=memory,
    )


def _place_outages(tree: FatTree, events: Timeline, links: Records, ledgers: Records) -> Int64:
    """Return all (down, up) times, a row of them for each link, and point both directions there.

    A row ends with NEVER, where `sim.queues.is_lost` stops.
    """
    rows: dict[tuple[int, ...], list[list[int]]] = {}
    for change in events.changes:
        for link in change.up:
            rows[_of_link(tree, link)][-1][1] = change.time_ps

        for link in change.down:
            rows.setdefault(_of_link(tree, link), []).append([change.time_ps, NEVER])

    for host, down_ps, up_ps in events.hosts:
        rows.setdefault(_of_host(tree, host), []).append([down_ps, up_ps])

    # All links without an outage share row 0.
    table = [[NEVER, NEVER]]
    ledgers["up_ps"] = NEVER
    for numbers, row in rows.items():
        for number in numbers:
            ledgers["outage"][number] = len(table)
            links["down_ps"][number], ledgers["up_ps"][number] = row[0]

        table += [*row, [NEVER, NEVER]]

    return np.array(table, dtype=np.int64)


def _of_link(tree: FatTree, link: int) -> tuple[int, ...]:
    """Return the two directed links of a link between switches."""
    return tuple(tree.first_port(end.switch) + end.port - 1 for end in tree.link_ends(link))


def _of_host(tree: FatTree, host: int) -> tuple[int, ...]:
    """Return the two directed links between a host and its edge."""
    edge, port = tree.access(host)
    return tree.first_port(edge) + port - 1, tree.first_port(tree.switches) + host


def _place_losses(scenario: Scenario, ledgers: Records) -> None:
    """Tell links how many of their packets they lose at random."""
    tree = scenario.tree
    of_links, of_hosts = loss_thresholds(scenario)
    for link, threshold in of_links.items():
        ledgers["unlucky"][[*_of_link(tree, link)]] = threshold

    for host, threshold in of_hosts.items():
        ledgers["unlucky"][[*_of_host(tree, host)]] = threshold


def _constants(scenario: Scenario) -> Constants:
    tree = scenario.tree
    gap = scenario.packets.gap_bytes
    size = scenario.threshold_bytes
    data_ps = _by_level(scenario, scenario.data_bytes)
    ack_ps = _by_level(scenario, scenario.ack_bytes)
    # The shortest packet on one hop: nothing that is handled in a window arrives in it.
    hops_ps = map(sum, zip(scenario.latencies_ps, map(min, data_ps, ack_ps), strict=True))
    percent = scenario.ecn_percent
    # Percentages are decimals: exact in fractions, so that thresholds do not depend on rounding. A
    # queue reaches a bin at its threshold, hence the ceiling; it is marked above, hence the floor.
    thresholds = [
        ceil(size * Fraction(str(part)) / 100) for part in scenario.load_balancer.bins_percent
    ]

    return Constants(
        hosts_per_edge=tree.hosts_per_edge,
        edges_per_pod=tree.edges_per_pod,
        pods=tree.pods,
        edge_uplinks=tree.edge_uplinks,
        agg_uplinks=tree.agg_uplinks,
        edge_agg_links=tree.edge_agg_links,
        agg_core_links=tree.agg_core_links,
        first_agg=tree.first_agg,
        first_core=tree.first_core,
        edge_ports=len(tree.ports(0)),
        agg_ports=len(tree.ports(tree.first_agg)),
        ports=tree.first_port(tree.switches),
        switches=tree.switches,
        hosts=tree.hosts,
        latency_ps=scenario.latencies_ps,
        window_ps=min(*hops_ps, LONGEST_WINDOW_PS),
        data_bytes=scenario.data_bytes,
        data_ps=data_ps,
        data_slot_ps=_by_level(scenario, scenario.data_bytes + gap),
        ack_bytes=scenario.ack_bytes,
        ack_ps=ack_ps,
        ack_slot_ps=_by_level(scenario, scenario.ack_bytes + gap),
        capacity=scenario.fabric.queue_bytes,
        ecn_bytes=NEVER if percent is None else floor(size * Fraction(str(percent)) / 100),
        threshold_1=thresholds[0],
        threshold_2=thresholds[1],
        threshold_3=thresholds[2],
        chooser=int(scenario.scheme.chooser),
        seed=scenario.seed,
        is_sack=int(rules(scenario).recovery == Recovery.SACK),
        is_stale=int(scenario.load_balancer.queue_staleness_ns > 0),
        is_shared=int(scenario.load_balancer.rr_pointer == "shared"),
        is_lossy=int(bool(scenario.failures.losses)),
    )


def _by_level(scenario: Scenario, size: int) -> tuple[int, int, int]:
    """Return how long so many bytes hold a link of each level."""
    return (
        scenario.tx_ps(size, Level.HOST),
        scenario.tx_ps(size, Level.EDGE_AGG),
        scenario.tx_ps(size, Level.AGG_CORE),
    )


def _likely_chunks(scenario: Scenario, flows: Traffic, lists: int) -> int:
    """Return enough chunks for what is usually under way and a window's reserve.

    The pool grows if that is not enough.
    """
    # Data and ACKs of a BDP for each sender, unless the messages are shorter; room that is not used
    # costs address space only.
    senders = len(np.unique(flows.source))
    waiting = min(int(flows.packets.sum()), 2 * senders * scenario.bdp_packets)
    return 4 * waiting // CHUNK + 2 * min(lists, 4 * waiting)


def grown(pool: Pool | None, chunks: int, counters: Int64) -> Pool:
    """Return a pool with `chunks` more spare chunks, what a pool holds staying where it is."""
    # Slots are indices, so a larger array with the same beginning is all that it takes.
    old = 0 if pool is None else len(pool.headers)
    packets = np.empty((old + chunks) * CHUNK, dtype=TRANSIT)
    spare = np.empty(old + chunks, dtype=np.int32)
    held = int(counters[SPARE])

    if pool is not None:
        packets[: len(pool.packets)] = pool.packets
        spare[:held] = pool.spare[:held]

    # The lowest on top of the stack, so that what is used lies close together.
    spare[held : held + chunks] = np.arange(old + chunks, old, -1) - 1
    counters[SPARE] += chunks
    return Pool(packets.view(np.recarray), packets.view(HEADER).view(np.recarray), spare)


def place_lists(pool: Pool, links: Records, hosts: Records, ports: int) -> None:
    """Give every list its first chunk: chunk i to link i, the next ones to the hosts' ACKs.

    They are the top of a new pool's stack. Hosts' lists have one reader (`sim.hosts`).
    """
    first = (np.arange(len(links) + len(hosts)) << CHUNK_BITS) + 1
    links.cursor = links.taken = links.tail = first[: len(links)]
    hosts.taken = hosts.tail = first[len(links) :]
    pool.headers["passes"][: len(first)] = np.arange(len(first)) >= ports


def _links(tree: FatTree) -> Records:
    links = records(tree.first_port(tree.switches) + tree.hosts, LINK)
    links.down_ps = NEVER
    return links


def _inputs(tree: FatTree) -> NDArray[np.int32]:
    """Return the link that arrives at each (switch, port), flat like the links."""
    # A link's two ends are each other's input; at an edge's lower ports hosts' links arrive.
    ports = tree.first_port(tree.switches)
    inputs = np.empty(ports, dtype=np.int32)
    lower, upper = _ends(tree)
    inputs[lower] = upper
    inputs[upper] = lower
    edge = np.arange(tree.edges)[:, None]
    index = np.arange(tree.hosts_per_edge)
    inputs[edge * len(tree.ports(0)) + index] = ports + edge * tree.hosts_per_edge + index

    return inputs


def _ends(tree: FatTree) -> tuple[Int64, Int64]:
    """Return the lower and the upper port, as links, of every inter-switch link."""
    # By `fattree.topology`'s numbers; a test asks the tree itself.
    first_agg = tree.first_port(tree.first_agg)
    agg_ports = len(tree.ports(tree.first_agg))
    edge, uplink = np.divmod(np.arange(tree.edge_links), tree.edge_uplinks)
    pod, position = np.divmod(edge, tree.edges_per_pod)
    above, parallel = np.divmod(uplink, tree.edge_agg_links)
    agg = pod * tree.aggs_per_pod + above
    lower = [edge * len(tree.ports(0)) + tree.hosts_per_edge + uplink]
    upper = [first_agg + agg * agg_ports + position * tree.edge_agg_links + parallel]

    if tree.cores:
        agg, uplink = np.divmod(np.arange(tree.aggs * tree.agg_uplinks), tree.agg_uplinks)
        pod, position = np.divmod(agg, tree.aggs_per_pod)
        index, parallel = np.divmod(uplink, tree.agg_core_links)
        core = position * tree.cores_per_agg + index
        lower.append(first_agg + agg * agg_ports + tree.downlinks(tree.first_agg) + uplink)
        first_core, core_ports = tree.first_port(tree.first_core), tree.downlinks(tree.first_core)
        upper.append(first_core + core * core_ports + pod * tree.agg_core_links + parallel)

    return np.concatenate(lower), np.concatenate(upper)


def placed_switches(tree: FatTree) -> Records:
    """Return the switches with their tier, place and ports."""
    switches = records(tree.switches, SWITCH)
    firsts = (0, tree.first_agg, tree.first_core, tree.switches)
    sizes = (tree.edges_per_pod, tree.aggs_per_pod, tree.cores_per_agg)
    for tier, size, (first, end) in zip(Tier, sizes, pairwise(firsts), strict=True):
        # Switches of a tier are alike.
        own = switches[first:end].view(np.recarray)
        number = np.arange(end - first)
        own.tier = tier
        own.pod, own.position = np.divmod(number, max(size, 1))
        own.ports = len(tree.ports(first))
        own.south = tree.downlinks(first)
        own.first_port = tree.first_port(first) + number * len(tree.ports(first))

    return switches


def _switches(scenario: Scenario, table: Forwarding, groups: Int64) -> Records:
    tree = scenario.tree
    switches = placed_switches(tree)
    widths = np.repeat(
        [table.edge_group.shape[1], table.agg_group.shape[1]], [tree.edges, tree.aggs]
    )
    switches.row[: tree.first_core] = offsets(widths)[:-1]
    switches.level = np.array([*map(LEVELS.index, table.columns), 0])[switches.tier]
    switches.cells[: tree.first_core] = offsets(2 * groups)[:-1]
    # Odd, so that multiplying is one to one: no two hashes become equal (decision 12).
    number = np.arange(tree.switches)
    switches.multiplier = mix(scenario.seed, component(Stream.MULTIPLIER, 0), number) | 1

    return switches


def _hosts(tree: FatTree, flows: Traffic) -> Records:
    hosts = records(tree.hosts, HOST)
    hosts.ready_ps = NEVER
    # Data come first, as if an ACK had just been sent.
    hosts.last_was_ack = 1
    hosts.timer_ps = NEVER
    is_sent = flows.packets > 0
    for first, kind in (("heap_first", is_sent), ("timer_first", ~is_sent)):
        hosts[first] = offsets(np.bincount(flows.source[kind], minlength=tree.hosts))[:-1]

    return hosts


def _flows(scenario: Scenario, flows: Traffic, gaps: Int64, pairs: "_Pairs") -> Flows:
    count = len(flows)
    table = _flow_table(scenario, flows, gaps, pairs)
    # Flows name those that they wait for; turned round, those that wait for each, in their order.
    followers = np.argsort(flows.after, kind="stable")
    waiting = np.repeat(np.arange(count), np.diff(flows.after_offset))
    logged = int(flows.packets.sum()) if rules(scenario).recovery == Recovery.SACK else 0

    return Flows(
        table=table,
        senders=records(count, SENDER),
        outstanding=records(int(table.ring_length.sum()), PACKET),
        ready_ps=np.full(count, NEVER, dtype=np.int64),
        place=np.zeros(count, dtype=np.int32),
        received=np.zeros(count, dtype=np.int32),
        reported=np.zeros(count, dtype=np.int32),
        blocked=np.diff(flows.after_offset).astype(np.int32),
        follower_offset=offsets(np.bincount(flows.after, minlength=count)),
        followers=waiting[followers],
        started_ps=np.full(count, NEVER, dtype=np.int64),
        arrivals=np.zeros(logged, dtype=np.int32),
        is_received=np.zeros(logged, dtype=np.uint8),
    )


def _flow_table(scenario: Scenario, flows: Traffic, gaps: Int64, pairs: "_Pairs") -> Records:
    tree = scenario.tree
    table = records(len(flows), FLOW)
    table.source = flows.source
    table.destination = flows.destination
    table.packets = flows.packets
    table.source_pod, table.source_edge, table.source_index = _coordinates(tree, flows.source)
    table.pod, table.edge, table.index = _coordinates(tree, flows.destination)
    table.hops = path_links(tree, flows)
    table.gap_ps = gaps
    table.phase_ps = traffic.phases(scenario, flows, gaps)
    table.compute_ps = flows.compute_ps
    table.pair = pairs.of_flow
    table.hash_data, table.hash_ack = _flow_hashes(tree, flows)
    table.ring_length = _ring_lengths(scenario, flows.packets, gaps)
    table.ring = offsets(table.ring_length)[:-1]
    table.log = offsets(flows.packets)[:-1]

    return table


def _coordinates(tree: FatTree, hosts: Int64) -> tuple[Int64, Int64, Int64]:
    edge, index = np.divmod(hosts, tree.hosts_per_edge)
    pod, position = np.divmod(edge, tree.edges_per_pod)
    return pod, position, index


def _ring_lengths(scenario: Scenario, packets: Int64, gaps: Int64) -> Int64:
    # An all-to-all has millions of flows and few kinds.
    shared = rules(scenario)
    kinds, of_flow = np.unique(np.stack([packets, gaps]), axis=1, return_inverse=True)
    lengths = [ring_length(shared, *kind) for kind in kinds.T.tolist()]

    return np.array(lengths, dtype=np.int64)[of_flow.ravel()]


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
def _label_hashes() -> tuple[UInt32, UInt32]:
    """Return what the low and the high byte of a label add to the hash, shape (256,) each."""
    nothing = _five_tuple_hash(0, 0, 0)
    low, high = (
        [_five_tuple_hash(0, 0, byte << shift) ^ nothing for byte in range(256)] for shift in (0, 8)
    )
    return np.array(low, dtype=np.uint32), np.array(high, dtype=np.uint32)


def _pointers(cells: int, pairs: "_Pairs") -> Pointers:
    return Pointers(
        cells=np.zeros(cells, dtype=np.int32),
        orders=np.zeros(cells, dtype=np.uint8),
        wraps=np.zeros(cells, dtype=np.uint8),
        host_cells=np.zeros((len(pairs.source), 2), dtype=np.int32),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The distinct (source, destination) hosts, which own Host DR's pointers, and flows' pairs."""

    source: Int64
    destination: Int64
    of_flow: Int64

    @classmethod
    def of(cls, tree: FatTree, flows: Traffic) -> "_Pairs":
        keys, of_flow = np.unique(
            flows.source * tree.hosts + flows.destination, return_inverse=True
        )
        return cls(*np.divmod(keys, tree.hosts), of_flow)


def _routes(scenario: Scenario, table: Forwarding, links: LinkState, pairs: _Pairs) -> Routes:
    tree = scenario.tree
    switch = np.repeat(np.arange(tree.first_core), np.diff(table.first_group))
    row, start, offset, steps = _waypoints(scenario, links, pairs)
    below_aggs = agg_bundles(tree, links)
    below_cores = core_bundles(tree, links)

    return Routes(
        groups=np.concatenate([table.edge_group.ravel(), table.agg_group.ravel()]),
        first_group=table.first_group,
        # From a switch's own numbers to those of all switches.
        group_schedule=table.first_schedule[switch] + table.group_schedule,
        group_start=table.group_start,
        schedule_offset=table.schedule_offset,
        slots=table.slots,
        weights=_schedule_weights(table),
        waypoint_row=row,
        waypoint_start=start,
        waypoint_offset=offset,
        waypoints=steps,
        agg_members=below_aggs.members,
        agg_counts=below_aggs.counts,
        core_members=below_cores.members,
        core_counts=below_cores.counts,
    )


def _schedule_weights(table: Forwarding) -> NDArray[np.uint8]:
    """Return how often each uplink occurs in each schedule, (schedules, most uplinks of a switch).

    That is its weight: schedules are interleaved from weights. Empty if nobody asks.
    """
    uplinks = table.tree.most_uplinks
    count = len(table.schedule_offset) - 1
    if table.policy.chooser not in WEIGHED:
        return np.zeros((0, uplinks), dtype=np.uint8)

    schedule = np.repeat(np.arange(count), np.diff(table.schedule_offset))
    weights = np.bincount(schedule * uplinks + table.slots, minlength=count * uplinks)
    return weights.reshape(count, uplinks).astype(np.uint8)


def _waypoints(
    scenario: Scenario, links: LinkState, pairs: _Pairs
) -> tuple[NDArray[np.int32], NDArray[np.int32], Int64, NDArray[np.uint8]]:
    """Return every pair's rows of waypoints and the starts of its pointers, and the rows (CSR).

    Both have a column for data and one for ACKs, whose way is another one: uplinks that have failed
    are an edge's own.
    """
    tree = scenario.tree
    if scenario.scheme.chooser is not Chooser.WAYPOINT:
        nothing = np.zeros(0, dtype=np.int32)
        return (
            nothing.reshape(0, 2),
            nothing.reshape(0, 2),
            np.zeros(1, dtype=np.int64),
            np.zeros((0, 2), dtype=np.uint8),
        )

    here = pairs.source // tree.hosts_per_edge
    there = pairs.destination // tree.hosts_per_edge
    both = np.stack(
        [_canonical(tree, links, here, there), _canonical(tree, links, there, here)], axis=1
    )
    keys, found = np.unique(both, return_inverse=True)
    row = found.reshape(both.shape)
    ways = waypoints(tree, links, *np.divmod(keys, tree.edges))
    length = np.diff(ways.offset)[row]
    data, _ = starts(scenario.seed, pairs.source, pairs.destination, length[:, 0])
    _, ack = starts(scenario.seed, pairs.destination, pairs.source, length[:, 1])

    return (
        row.astype(np.int32),
        np.stack([data, ack], axis=1).astype(np.int32),
        ways.offset,
        ways.steps,
    )


def _canonical(tree: FatTree, links: LinkState, here: Int64, there: Int64) -> Int64:
    """Return here * edges + there.

    Without failures, one pair stands for all of its kind, as the steps are the same.
    """
    if not (links.edge_agg.all() and links.agg_core.all()):
        return here * tree.edges + there

    same_pod = here // tree.edges_per_pod == there // tree.edges_per_pod
    kind = np.where(here == there, 0, np.where(same_pod, 1, tree.edges - 1))
    return kind.astype(np.int64)
