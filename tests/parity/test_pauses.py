"""Pauses on the virtual network and in the plain model, which foresees nothing: alike to the ps."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, LoadBalancer, Packets, Scenario, Transport
from fattree.policies import POLICIES
from tests.naive.lossless import LosslessNetwork

COUNTS = ("packets", "bytes", "dropped", "marked", "pauses", "paused_ps", "victims")
HORIZON_PS = 10**9
LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=4)


def of_virtual(outcome: Outcome) -> dict[str, Any]:
    return {
        "done": [flow.done_ps for flow in outcome.flows],
        "transmissions": [flow.transmissions for flow in outcome.flows],
        "ports": [
            {name: getattr(port, name) for name in (*COUNTS, "max_queue_bytes")}
            for port in outcome.ports
        ],
        "hosts": outcome.host_paused_ps,
        "means": [port.mean_queue_bytes for port in outcome.ports],
    }


def of_naive(network: LosslessNetwork) -> dict[str, Any]:
    end_ps = network.end_ps
    return {
        "done": [flow.done_ps for flow in network.flows],
        "transmissions": [flow.transmissions for flow in network.flows],
        "ports": [
            {
                "packets": server.packets,
                "bytes": server.load_bytes,
                "dropped": server.drops,
                "marked": server.marks,
                "pauses": server.pauses,
                "paused_ps": server.paused_until(end_ps),
                "victims": server.victims,
                "max_queue_bytes": server.max_bytes,
            }
            for server in network.servers.values()
        ],
        "hosts": network.host_paused_ps,
        "means": [server.byte_ps(end_ps) / end_ps for server in network.servers.values()],
    }


def assert_same(chosen: Scenario) -> Outcome:
    outcome = VirtualFabric(chosen).run(HORIZON_PS)
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    assert of_virtual(outcome) == of_naive(network)
    assert outcome.accounts.unaccounted == 0
    return outcome


def incast(policy: str, **more: Any) -> Scenario:
    """Return all hosts of a small fabric that send to one, whose buffers pause early."""
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 4, "queue_bytes": 150_000, "flow_control": "pfc"},
            "collective": {
                "matrix": "pairs",
                "message_bytes": 40 * 4096,
                "pairs": [(host, 0) for host in range(1, 16)],
            },
            "transport": {"recovery": "go_back_n", "timer_floor_rtt": 100},
            "load_balancer": {"ecn_percent": 10} if policy == "host_pkt_ar" else {},
        }
        | more
    )


@pytest.mark.parametrize("policy", ["flow", "ofan", "jsq", "host_dr", "host_pkt_ar"])
def test_an_incast_pauses_alike_and_drops_nothing(policy: str) -> None:
    outcome = assert_same(incast(policy))
    assert sum(port.pauses for port in outcome.ports) > 10
    assert sum(port.paused_ps for port in outcome.ports) > 0
    assert outcome.accounts.dropped == 0


def test_with_too_little_headroom_the_same_packets_are_dropped() -> None:
    fabric = Fabric(k=4, queue_bytes=60_000, flow_control="pfc", headroom_bytes=20_000)
    outcome = assert_same(incast("flow", fabric=fabric))
    assert outcome.accounts.dropped > 0


@st.composite
def paused(draw: Any, policy: str) -> Scenario:
    """Draw a small fabric whose buffers pause, and hosts that meet at receivers."""
    payload = draw(st.sampled_from((4096, 1000)))
    latency_ns = draw(st.sampled_from((500, 1, 83.56, 2_000)))
    edges = draw(st.integers(1, 3))
    fabric = Fabric(
        pods=draw(st.integers(2, 3)),
        edges_per_pod=edges,
        hosts_per_edge=draw(st.integers(1, 3)),
        aggs_per_pod=draw(st.integers(1, 3)),
        cores_per_agg=draw(st.integers(1, 2)),
        rate_gbps=draw(st.sampled_from((800, 333, 100))),
        latency_ns=latency_ns,
        edge_agg_gbps=draw(st.sampled_from((None, 777))),
        agg_core_latency_ns=draw(st.sampled_from((None, 700))),
        queue_bytes=draw(st.sampled_from((50_000, 130_000, 220_000))),
        threshold_bytes=draw(st.sampled_from((None, 30_000))),
        flow_control="pfc",
        headroom_bytes=draw(st.sampled_from((25_000, 40_000))),
    )
    hosts = fabric.tree.hosts
    pairs = tuple((source, source % 2) for source in range(2, hosts)) or ((0, 1),)
    recovery, congestion = draw(
        st.sampled_from(
            (("go_back_n", "fixed"), ("go_back_n", "dcqcn"), ("sack", "dcqcn"), ("sack", "mswift"))
        )
    )
    return Scenario(
        policy=policy,
        seed=draw(st.integers(0, 2**63 - 1)),
        fabric=fabric,
        packets=Packets(payload_bytes=payload, gap_bytes=draw(st.sampled_from((20, 0)))),
        collective=Collective(
            matrix="pairs", message_bytes=draw(st.integers(1, 40)) * payload, pairs=pairs
        ),
        transport=Transport(
            recovery=recovery,
            congestion=congestion,
            timer_floor_rtt=draw(st.sampled_from((3, 30))),
            random_phases=draw(st.booleans()),
            receiver_share=draw(st.sampled_from((None, False))),
        ),
        load_balancer=LoadBalancer(ecn_percent=draw(st.sampled_from((None, 20)))),
    )


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=() if at % 4 == 0 else pytest.mark.slow)
        for at, policy in enumerate(POLICIES)
    ],
)
@given(st.data())
@LENIENT
def test_drawn_pauses_are_the_same(policy: str, data: st.DataObject) -> None:
    assert_same(data.draw(paused(policy)))
