"""From a scenario to the arrays that kernels run on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from fattree.demand.flows import Flows as Traffic
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import PAUSE_BYTES, is_paused
from fattree.experiment.sharing import alpha
from fattree.routes.buffers import refuse_unable_pauses, refuse_unable_sharing
from fattree.routes.demand import Demand
from fattree.routes.failures import Timeline
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import Level
from hostagent.rules import refuse_unable_hosts, rules
from hostagent.transports.state import NEVER, Recovery, Rules
from sim.arrays.flows import flows_of, hosts_of, label_hashes, pointers_of, short_payloads
from sim.arrays.host_rule_code import compiled
from sim.arrays.routing import Pairs, Tables, phases, routes_of, waypoint_routes
from sim.arrays.wiring import (
    gates_of,
    grown,
    inputs_of,
    links_of,
    nics_of,
    outages_of_hosts,
    passages_of,
    place_lists,
    place_losses,
    place_outages,
    place_paces,
    placed_switches,
    rooms_of,
    switches_of,
)
from sim.kernels.plain import Form, features, form_needed
from sim.kernels.records import CHUNK, FRAMED, LEDGER, TRANSIT, Records, records
from sim.kernels.state import COUNTERS, SPARE, UNFINISHED, Constants, Flows, OwnRule, Routes, World

# The time within a window has 20 bits in a key (`sim.kernels.switches`). A shorter window is always
# right.
LONGEST_WINDOW_PS = 1 << 20


class Epoch(NamedTuple):
    """From `time_ps` on, these routes hold."""

    time_ps: int
    routes: Routes


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The arrays of a run: the world at time 0, and the routes in order of time, from 0 on."""

    scenario: Scenario
    flows: Traffic
    world: World
    routes: tuple[Epoch, ...]
    events: Timeline


def build(scenario: Scenario) -> Network:
    """Return the arrays of a scenario.

    Raises FabricError where it cannot be built.
    """
    refuse_unsupported(scenario)
    demand = Demand.of(scenario)
    flows, events = demand.flows, demand.events
    pairs = Pairs.of(scenario.tree, flows)
    states = list(phases(scenario, events))
    tables = Tables(scenario)
    forwardings = [tables.forwarding(phase) for phase in states]
    # Pointers stay when routes change, so a switch has cells for the most groups that it ever has.
    groups = np.max([np.diff(table.first_group) for table in forwardings], axis=0)
    epochs = tuple(
        Epoch(phase.time_ps, routes_of(scenario, table, phase, pairs, tables.lags.of_switch))
        for table, phase in zip(forwardings, states, strict=True)
    )

    world = _world(
        demand,
        pairs,
        constants=_constants(scenario, short_payloads(scenario, flows)),
        switches=switches_of(scenario, forwardings[0], groups),
        cells=int(2 * groups.sum()),
    )
    return Network(
        scenario,
        flows,
        world,
        routes=epochs,
        events=events,
    )


def build_for_program(demand: Demand, edge_header_bytes: int = 0) -> Network:
    """Return the arrays of a scenario with P4 switches: hosts, links, and no choices.

    Links between switches carry `edge_header_bytes` more of each packet.
    Only Host DR's hosts have routes (`waypoint_routes`): the switches' are in their tables. Raises
    FabricError.
    """
    scenario, flows, events = demand.scenario, demand.flows, demand.events
    pairs = Pairs.of(scenario.tree, flows)
    # A packet's departure is an event at its switch, so only the link's latency lies between two.
    constants = _constants(scenario, short_payloads(scenario, flows))
    constants = constants._replace(window_ps=min(*scenario.latencies_ps, LONGEST_WINDOW_PS))
    switches = placed_switches(scenario.tree)
    links = LinkState.without(scenario.tree, events.first_routes, events.first_slow)
    routes = waypoint_routes(scenario, flows, links)

    world = _world(
        demand,
        pairs,
        constants=constants,
        switches=switches,
        cells=0,
        record=FRAMED,
        edge_header_bytes=edge_header_bytes,
    )
    return Network(
        scenario,
        flows,
        # One form of the kernels around programs, which do all: to compile another takes long.
        world._replace(features=world.features or 0),
        routes=(Epoch(0, routes),),
        events=events,
    )


def form_of(scenario: Scenario) -> Form:
    """Return which kernels a scenario needs (`sim.kernels.plain`)."""
    # How long messages are plays no part in it.
    return form_needed(_constants(scenario, []), rules(scenario))


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise ExperimentError for features that hosts or the kernels lack.

    Kernels have no P4, and no controller that detects changes of links by itself: here, routes
    follow every change of a link after G.
    """
    refuse_unable_hosts(scenario)
    refuse_unable_pauses(scenario)
    refuse_unable_sharing(scenario)
    if scenario.program is not None:
        raise ExperimentError(
            "program: the kernels run no P4 (ofan sim run --program, emulation.virtual.simulated)"
        )

    controller = scenario.controller
    if controller.kind == "bgp":
        raise ExperimentError(
            'controller.kind = "bgp": routers (FRR) run on --network mininet only;'
            " --set controller.weights=bgp has their weights"
        )

    if controller.detection == "netlink":
        raise ExperimentError(
            'controller.detection = "netlink": simulated links have no kernel interfaces'
            " (--network mininet)"
        )


def _world(
    demand: Demand,
    pairs: "Pairs",
    *,
    constants: Constants,
    switches: Records,
    cells: int,
    record: np.dtype[np.void] = TRANSIT,
    edge_header_bytes: int = 0,
) -> World:
    scenario, flows = demand.scenario, demand.flows
    tree = scenario.tree
    counters = np.zeros(COUNTERS, dtype=np.int64)
    counters[UNFINISHED] = len(flows)

    # A list for each port, each host's link and each host's ACKs, with a chunk to begin with.
    ports = tree.first_port(tree.switches)
    links = links_of(tree, constants.lanes)
    lists = len(links) + tree.hosts
    pool = grown(
        None,
        lists + _likely_chunks(scenario, flows, lists),
        counters,
        keeps_starts=bool(constants.is_slowed and constants.lanes),
        record=record,
    )
    counters[SPARE] -= lists
    hosts = hosts_of(tree, flows, scenario.fabric.is_drawn)
    ledgers = records(ports + tree.hosts, LEDGER)
    place_losses(scenario, ledgers)
    place_lists(pool, links, hosts[: tree.hosts].view(np.recarray), ports)
    low, high = label_hashes()
    shared = rules(scenario)

    short = short_payloads(scenario, flows)
    columns = flows_of(demand, pairs, short)
    outages = place_outages(tree, demand.events, links, ledgers)

    return World(
        constants=constants,
        rules=shared,
        own=_own_rule(scenario, shared, columns),
        pool=pool,
        links=links,
        ledgers=ledgers,
        passages=passages_of(scenario, short, edge_header_bytes),
        nics=nics_of(scenario, demand.rate, short),
        inputs=inputs_of(tree),
        wakes_ps=np.repeat([NEVER, 0], [ports, tree.hosts + tree.switches]),
        outages=outages,
        outages_of=outages_of_hosts(tree, demand.events, ledgers),
        paces=place_paces(scenario, ledgers, short, edge_header_bytes),
        gates=gates_of(scenario),
        rooms=rooms_of(scenario, edge_header_bytes),
        switches=switches,
        hosts=hosts,
        heap=np.zeros(int((flows.packets > 0).sum()) << constants.is_drawing, dtype=np.int32),
        timers=np.zeros(int((flows.packets == 0).sum()), dtype=np.int32),
        flows=columns,
        pointers=pointers_of(cells, pairs),
        hash_low=low,
        hash_high=high,
        counters=counters,
        features=features(constants, shared),
    )


def _own_rule(scenario: Scenario, shared: Rules, flows: Flows) -> OwnRule:
    """Return the scenario's host rule, if any, compiled; raises ExperimentError."""
    rule = scenario.host_rule
    if rule is None:
        return OwnRule(0, 0, 0, 0, 0, 0, 0, memory=np.zeros(0, dtype=np.uint8))

    made = compiled(rule.text, rule.file)
    head = len(shared) * 8
    # A state for each flow, whether it has a sender or not.
    memory = np.zeros(head + len(flows.table) * made.state.itemsize, dtype=np.uint8)
    memory[:head].view(np.int64)[:] = shared
    memory[head:].view(made.state)[:] = made.first
    address = memory.ctypes.data

    return OwnRule(
        next_label=made.next_label.address,
        on_ack=made.on_ack.address,
        states_at=address + head,
        state_bytes=made.state.itemsize,
        senders_at=flows.senders.ctypes.data,
        packets_at=flows.outstanding.ctypes.data,
        rules_at=address,
        memory=memory,
    )


def _constants(scenario: Scenario, short: Sequence[int]) -> Constants:
    tree = scenario.tree
    size = scenario.threshold_bytes
    passages = passages_of(scenario, short)
    # The shortest packet on one hop: nothing that is handled in a window arrives in it.
    hops_ps = (passages.latency_ps + passages.sending_ps).tolist()
    if is_paused(scenario):
        # Control frames are shorter than packets.
        hops_ps += [
            scenario.tx_ps(PAUSE_BYTES, level) + scenario.latencies_ps[level] for level in Level
        ]

    marking = scenario.marking
    has_lanes = scenario.transport.trimming or is_paused(scenario)
    # Percentages are decimals: exact in fractions, so that thresholds do not depend on rounding. A
    # queue reaches a bin at its threshold, hence the ceiling.
    thresholds = [
        ceil(size * Fraction(str(part)) / 100) for part in scenario.load_balancer.bins_percent
    ]

    return Constants(
        hosts_per_edge=tree.hosts_per_edge,
        edges_per_pod=tree.edges_per_pod,
        pods_per_plane=tree.pods_per_plane,
        edge_uplinks=tree.edge_uplinks,
        agg_uplinks=tree.agg_uplinks,
        edge_agg_links=tree.edge_agg_links,
        agg_core_links=tree.agg_core_links,
        first_agg=tree.first_agg,
        first_core=tree.first_core,
        edge_ports=len(tree.ports(0)),
        agg_ports=len(tree.ports(tree.first_agg)),
        ports=tree.first_port(tree.switches),
        lanes=tree.first_port(tree.switches) + tree.hosts if has_lanes else 0,
        switches=tree.switches,
        hosts=tree.hosts,
        machines=tree.machines,
        planes=tree.planes,
        window_ps=min(*hops_ps, LONGEST_WINDOW_PS),
        data_bytes=scenario.data_bytes,
        ack_bytes=scenario.ack_bytes,
        least_slot_ps=min(
            scenario.tx_ps(scenario.packet_bytes(payload) + scenario.packets.gap_bytes)
            for payload in (*short, scenario.packets.payload_bytes)
        ),
        capacity=scenario.fabric.queue_bytes,
        alpha=alpha(scenario),
        ecn_bytes=NEVER if marking is None else marking.least,
        ecn_full_bytes=NEVER if marking is None else marking.full,
        ecn_slope=0 if marking is None else marking.slope,
        threshold_1=thresholds[0],
        threshold_2=thresholds[1],
        threshold_3=thresholds[2],
        chooser=int(scenario.scheme.chooser),
        seed=scenario.seed,
        is_sack=int(rules(scenario).recovery == Recovery.SACK),
        is_stale=int(scenario.load_balancer.queue_staleness_ns > 0),
        is_shared=int(scenario.load_balancer.rr_pointer == "shared"),
        is_lossy=int(bool(scenario.failures.losses)),
        is_slowed=int(bool(scenario.failures.degraded)),
        is_pausing=int(is_paused(scenario)),
        is_drawing=int(scenario.fabric.is_drawn),
        subflows=scenario.scheme.subflows,
    )


def _likely_chunks(scenario: Scenario, flows: Traffic, lists: int) -> int:
    """Return enough chunks for the packets that are usually under way and a window's reserve.

    The pool grows if that is not enough.
    """
    # Data and ACKs of a BDP for each sender, unless the messages are shorter; room that is not used
    # costs address space only.
    senders = len(np.unique(flows.source))
    waiting = min(int(flows.packets.sum()), 2 * senders * scenario.bdp_packets)
    return 4 * waiting // CHUNK + 2 * min(lists, 4 * waiting)
