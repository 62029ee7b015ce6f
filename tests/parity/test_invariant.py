"""Appendix F's invariant at P4 switches and in the simulator: equal rates down to a switch."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sim
from fattree.experiment.model import Collective, Fabric, Scenario
from reproduction.report.measures.balance import most_feeding, sources, spreads
from tests.python_network.fabric import PythonFabric

LONG = Collective(matrix="inter_pod_permutation", message_bytes=40 * 4096)


def on_p4_switches(scenario: Scenario) -> Any:
    """Return the counters of a run on the virtual network in the form of a simulator's result."""
    ports = PythonFabric(scenario).run().ports
    counters = {
        "packets": np.array([port.packets for port in ports]),
        "bytes": np.array([port.bytes for port in ports]),
    }
    return SimpleNamespace(scenario=scenario, ports=SimpleNamespace(**counters))


@pytest.mark.parametrize("network", [on_p4_switches, sim.run])
@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
def test_a_source_edge_sends_at_one_rate_over_all_links_down_to_a_switch(
    policy: str, network: Any
) -> None:
    case = Scenario(policy=policy, fabric=Fabric(k=4), collective=LONG)
    for alone in sources(case, 2)[::3]:
        assert max(spreads(network(alone))) <= 1


@pytest.mark.parametrize("network", [on_p4_switches, sim.run])
def test_together_links_down_to_a_switch_differ_by_a_packet_for_each_pointer_that_feeds_it(
    network: Any,
) -> None:
    case = Scenario(policy="ofan", fabric=Fabric(k=4), collective=LONG)
    to_aggs, to_edges = spreads(network(case))
    assert to_aggs <= case.fabric.k - 1
    assert to_edges <= most_feeding(case)


@pytest.mark.parametrize("network", [on_p4_switches, sim.run])
def test_one_counter_for_all_destinations_breaks_it(network: Any) -> None:
    case = Scenario(policy="simple_rr", fabric=Fabric(k=4), collective=LONG)
    assert max(max(spreads(network(alone))) for alone in sources(case, 2)[::3]) > 10
