"""The demand of a scenario: its flows, the events of links, and the pace of each flow."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fattree.demand import traffic
from fattree.demand.flows import Flows, path_links
from fattree.experiment.model import Scenario
from fattree.routes.failures import Timeline, timeline
from fattree.routes.rates import rho_max
from fattree.routes.wecmp import LinkState

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The flows of a scenario and the link events, worked out once for a run.

    `rate` is the share of line rate at which hosts send; `gaps_ps` and `phases_ps` (flows,) are
    each flow's pacing gap and the wait before its first packet,
    `hops` the links of its path.
    """

    scenario: Scenario
    flows: Flows
    events: Timeline
    rate: Fraction
    gaps_ps: Int64
    phases_ps: Int64
    hops: Int64

    @classmethod
    def of(cls, scenario: Scenario, flows: Flows | None = None) -> "Demand":
        """Work out the demand of a scenario's flows, or of others.

        Raises FabricError where it cannot be built.
        Links that are down at the start make the rate smaller (load balancers, "Pacing").
        """
        flows = traffic.flows(scenario) if flows is None else flows
        events = timeline(scenario, flows)
        # The paper's rho_max is of one state of the links. Here it is the state of time 0: links
        # that fail or come back later do not change a pace (a choice).
        links = LinkState.without(scenario.tree, events.down_at_start)
        rate = rho_max(scenario.tree, links, flows, scenario.speeds)
        gaps_ps = traffic.gaps(scenario, flows, rate)
        phases_ps = traffic.phases(scenario, flows, gaps_ps)
        hops = path_links(scenario.tree, flows)
        return cls(scenario, flows, events, rate, gaps_ps, phases_ps, hops)
