"""Hosts of a scenario: the plan of every flow, and the endpoints that run the rules."""

from collections.abc import Collection
from functools import partial

import numpy as np

from fattree.experiment.nics import nic
from fattree.policies import Chooser
from fattree.routes.demand import Demand
from fattree.shape.addressing import host_ip, host_mac
from fattree.shape.topology import FatTree
from hostagent.endpoint import Endpoint
from hostagent.flow_plan import FlowPlan, Waits
from hostagent.own_packet import scenario_packets
from hostagent.own_rule import scenario_rule
from hostagent.packets import Ends
from hostagent.rules import is_connected, rules
from hostagent.segment_routes import SegmentRoutes
from hostagent.source_routes import SourceRoutes


def plans(demand: Demand) -> list[FlowPlan]:
    """Return the plan of every flow, for its hosts."""
    scenario, flows = demand.scenario, demand.flows
    paces = (demand.gaps_ps, demand.phases_ps)
    columns = (flows.source, flows.destination, flows.packets, *paces, flows.start_ps, demand.hops)
    after = [tuple(flows.waits_for(flow).tolist()) for flow in range(len(flows))]
    rows = zip(
        range(len(flows)),
        *(column.tolist() for column in columns),
        after,
        flows.compute_ps.tolist(),
        flows.in_turn.tolist() if scenario.is_shared_actively else [0] * len(flows),
        strict=True,
    )

    payload = scenario.packets.payload_bytes
    less = np.where(flows.packets > 0, payload - flows.last_bytes, 0).tolist()
    return [FlowPlan._make((*row, short)) for row, short in zip(rows, less, strict=True)]


def ends(tree: FatTree, source: int, destination: int) -> Ends:
    """Return the addresses of a packet from one host to another."""
    return Ends(
        host_mac(tree, source),
        host_mac(tree, destination),
        host_ip(tree, source),
        host_ip(tree, destination),
    )


def endpoints(demand: Demand, hosts: Collection[int], run: int = 0) -> dict[int, Endpoint]:
    """Return the endpoints of some hosts in a run of this number."""
    scenario, events = demand.scenario, demand.events
    tree = scenario.tree
    shared = rules(scenario)
    own_rule = scenario_rule(scenario)
    packets = scenario_packets(scenario)
    payload = scenario.packets.payload_bytes
    of_host: dict[int, list[FlowPlan]] = {host: [] for host in hosts}

    planned = plans(demand)
    # A flow between two of these hosts is planned at both, as each has a part in it.
    for plan in planned:
        for host in {plan.source, plan.destination} & of_host.keys():
            of_host[host].append(plan)

    waits = {tree.machine(host): Waits() for host in of_host}
    nics = {
        less: nic(scenario, demand.rate, payload - less)
        for less in {0, *(plan.less for plan in planned)}
    }

    def endpoint(host: int) -> Endpoint:
        routes: SourceRoutes | SegmentRoutes | None = None
        if scenario.scheme.chooser is Chooser.WAYPOINT:
            routes = SourceRoutes(scenario, host, events.first_routes, events.first_slow)
        elif scenario.scheme.chooser is Chooser.SEGMENTS:
            routes = SegmentRoutes(tree, host)

        return Endpoint(
            of_host[host],
            host,
            rules=shared,
            ends=partial(ends, tree),
            payload_bytes=payload,
            routes=routes,
            run=run,
            own_rule=own_rule,
            packets=packets,
            waits=waits[tree.machine(host)],
            nics=nics,
            is_connected=is_connected(scenario),
        )

    return {host: endpoint(host) for host in of_host}
