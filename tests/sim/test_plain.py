"""Plain kernels leave out features a run does not have, and nothing else (`sim.kernels.plain`)."""

from dataclasses import replace
from typing import Any

import pytest

from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    Failures,
    LoadBalancer,
    Loss,
    Scenario,
    Transport,
)
from sim.arrays.network import build, form_of
from sim.kernels.plain import PLAIN, Form
from sim.runs.engine import simulate

SMALL = Fabric(k=4)
WIDE: dict[str, Any] = {
    "pods": 2,
    "edges_per_pod": 2,
    "hosts_per_edge": 2,
    "aggs_per_pod": 2,
    "cores_per_agg": 2,
}
# For each number that plain kernels know, a scenario that has another number.
FEATURES: dict[str, dict[str, Any]] = {
    "edge_agg_links": {"fabric": Fabric(**WIDE, edge_agg_links=2)},
    "agg_core_links": {"fabric": Fabric(**WIDE, agg_core_links=2)},
    "planes": {"fabric": Fabric(k=4, planes=2)},
    "lanes": {"transport": Transport(trimming=True)},
    "is_stale": {"load_balancer": LoadBalancer(queue_staleness_ns=1)},
    "is_lossy": {"failures": Failures(losses=(Loss(link="edge0_0-agg0_0", share=0.1),))},
    "is_slowed": {"failures": Failures(degraded=(Degraded(link="edge0_0-agg0_0", rate=0.5),))},
    "is_pausing": {"fabric": Fabric(k=4, flow_control="pfc")},
    "is_drawing": {"fabric": Fabric(k=4, planes=2, plane_use="draw")},
    "alpha": {"fabric": Fabric(k=4, buffer="shared")},
    "jitter_permille": {"transport": Transport(pacing_jitter=0.1)},
    "trimming": {"transport": Transport(trimming=True)},
    "acks_first": {"transport": Transport(trimming=True, acks_first=True)},
    "packets_per_ack": {"transport": Transport(packets_per_ack=2)},
}


def outcome(scenario: Scenario, *, with_all: bool) -> list[object]:
    """Return a run's results, with the kernels that can do all or with its own."""
    network = build(scenario)
    if with_all:
        network = replace(network, world=network.world._replace(features=1))

    result = simulate(network, None, None, 0)
    ports = result.ports
    return [
        result.end_ps,
        result.done_ps.tolist(),
        result.transmissions.tolist(),
        ports.packets.tolist(),
        ports.max_queue_bytes.tolist(),
        ports.queue_byte_ps.tolist(),
    ]


@pytest.mark.parametrize("policy", ["ofan", "jsq", "switch_pkt_ar", "host_dr", "host_flowlet_ar"])
def test_plain_kernels_give_the_same_run(policy: str) -> None:
    scenario = Scenario(policy=policy, fabric=SMALL, collective=Collective(message_bytes=65_536))
    assert build(scenario).world.features is None
    assert outcome(scenario, with_all=False) == outcome(scenario, with_all=True)


def test_no_run_with_a_feature_gets_plain_kernels() -> None:
    assert FEATURES.keys() == {name for numbers in PLAIN.values() for name in numbers}
    for name, options in FEATURES.items():
        scenario = Scenario(policy="jsq", **{"fabric": SMALL, **options})
        assert form_of(scenario) is (Form.PAUSING if name == "is_pausing" else Form.GENERAL)
        assert build(scenario).world.features is not None


@pytest.mark.parametrize("transport", [Transport(), Transport(recovery="sack")])
def test_runs_without_features_do(transport: Transport) -> None:
    assert form_of(Scenario(fabric=SMALL, transport=transport)) is Form.PLAIN
