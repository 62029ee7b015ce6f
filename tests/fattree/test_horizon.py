"""When a run is given up."""

import numpy as np

from fattree import traffic
from fattree.bounds import bound_ps
from fattree.experiment import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.failures import timeline
from fattree.horizon import HORIZON_BOUNDS, given_up_ps
from fattree.units import PS_PER_NS


def horizon(failures: Failures) -> tuple[int, int]:
    """Return a run's horizon and what it is by the bound alone."""
    scenario = Scenario(
        fabric=Fabric(k=4), collective=Collective(message_bytes=4096), failures=failures
    )
    flows = traffic.flows(scenario)
    gaps = np.full(len(flows), scenario.slot_ps)
    bound = HORIZON_BOUNDS * bound_ps(scenario, flows, gaps)
    return given_up_ps(scenario, flows, timeline(scenario, flows), gaps), bound


def test_without_failures_it_is_a_hundred_bounds() -> None:
    found, bound = horizon(Failures())
    assert found == bound


def test_routes_that_follow_late_put_it_off() -> None:
    event = FailureEvent(link="edge0_0-agg0_0", down_ns=500)
    at_once, bound = horizon(Failures(events=(event,)))
    late, _ = horizon(Failures(events=(event,), convergence_rtt=1000))
    assert at_once == bound + 500 * PS_PER_NS
    assert late > at_once


def test_without_new_routes_the_last_link_counts() -> None:
    event = FailureEvent(link="edge0_0-agg0_0", down_ns=500, up_ns=900)
    found, bound = horizon(Failures(events=(event,), convergence_rtt=float("inf")))
    assert found == bound + 900 * PS_PER_NS
