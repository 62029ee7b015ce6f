"""Small fabrics with buffers that pause, and the runs' results there, in every column."""

from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import sim
from fattree.experiment.model import Collective, Fabric, LoadBalancer, Packets, Scenario, Transport
from sim.runs.results import Ports
from tests.naive.lossless import LosslessNetwork
from tests.parity.drawing import sizes
from tests.parity.scenarios import scenarios

COUNTS = ("packets", "bytes", "dropped", "marked", "pauses", "paused_ps", "victims")
HORIZON_PS = 10**9
LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=4)


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


def all_of_naive(network: LosslessNetwork) -> dict[str, Any]:
    """Return every column that the simulator's results have."""
    links = [host.link for host in network.hosts]
    return {
        "end": network.end_ps,
        "start": [flow.started_ps for flow in network.flows],
        "first": [flow.sender.pacer.first_ps for flow in network.flows],
        "done": [flow.done_ps for flow in network.flows],
        "transmissions": [flow.transmissions for flow in network.flows],
        "freezes": [flow.freezes for flow in network.flows],
        "returns": [flow.returns for flow in network.flows],
        "host bytes": [(port.load_bytes, port.packets) for port in links],
        "host pauses": network.host_paused_ps,
        "ports": [
            port
            | {
                "trimmed": 0,
                "lost_to_failure": server.lost,
                "queue_byte_ps": server.byte_ps(end_ps),
            }
            for end_ps in (network.end_ps,)
            for port, server in zip(
                of_naive(network)["ports"], network.servers.values(), strict=True
            )
        ],
    }


def all_of_sim(result: sim.Result) -> dict[str, Any]:
    names = [field.name for field in fields(Ports)]
    columns = [getattr(result.ports, name).tolist() for name in names]
    sent = zip(result.host_bytes.tolist(), result.host_packets.tolist(), strict=True)
    return {
        "end": result.end_ps,
        "start": result.start_ps.tolist(),
        "first": result.first_ps.tolist(),
        "done": result.done_ps.tolist(),
        "transmissions": result.transmissions.tolist(),
        "freezes": result.freezes.tolist(),
        "returns": result.returns.tolist(),
        "host bytes": list(sent),
        "host pauses": result.host_paused_ps,
        "ports": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
    }


def assert_simulator_same(chosen: Scenario, network: LosslessNetwork) -> sim.Result:
    # The plain model has ended.
    result = sim.run(chosen, horizon_ps=10 * HORIZON_PS)
    assert all_of_sim(result) == all_of_naive(network)
    assert result.host_lost == result.unroutable == 0
    return result


def incast(policy: str, **more: Any) -> Scenario:
    """Return an incast of all hosts of a small fabric to host 0, with buffers that pause early."""
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


SHARING = st.sampled_from(
    (
        {},
        {"buffer": "shared"},
        *({"buffer": "shared", "buffer_alpha": of} for of in (0.5, 0.777, 8)),
    )
)


@st.composite
def paused(draw: Any, policy: str) -> Scenario:
    """Draw a small fabric with buffers that pause, and hosts that meet at receivers."""
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
        **draw(SHARING),
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
            matrix="pairs",
            message_bytes=draw(sizes(draw(st.integers(1, 40)), payload)),
            pairs=pairs,
        ),
        transport=Transport(
            recovery=recovery,
            congestion=congestion,
            timer_floor_rtt=draw(st.sampled_from((3, 30))),
            reorder_packets=draw(st.sampled_from((0, 4))) if recovery == "go_back_n" else 0,
            random_phases=draw(st.booleans()),
            receiver_share=draw(st.sampled_from((None, False))),
        ),
        load_balancer=LoadBalancer(ecn_percent=draw(st.sampled_from((None, 20)))),
    )


@st.composite
def crowded(draw: Any, policy: str, has_faults: bool = False, planes: int = 1) -> Scenario:
    """Draw any scenario with buffers for few packets; half the time all happens at once.

    More `planes` than 1 are separate fabrics of the drawn counts.
    """
    drawn = draw(scenarios(policy)).model_dump(exclude_unset=True)
    if not has_faults:
        drawn["failures"] = {}

    if draw(st.booleans()):
        # Packets, links and control frames of one clock.
        drawn["packets"] = {
            "payload_bytes": draw(st.sampled_from((64 * 64, 6 * 64))) - 62,
            "gap_bytes": draw(st.sampled_from((0, 64))),
        }
        drawn["transport"] |= {"random_phases": False, "receiver_share": False}
        drawn["fabric"] |= {
            "rate_gbps": 800,
            "latency_ns": draw(st.sampled_from((0.64, 40.96, 5.12, 128))),
            **dict.fromkeys(("edge_agg_gbps", "agg_core_gbps")),
            **dict.fromkeys(("edge_agg_latency_ns", "agg_core_latency_ns")),
        }

    whole = drawn["packets"]["payload_bytes"] + 62
    headroom = draw(st.sampled_from((0, whole, 3 * whole)))
    drawn["transport"]["trimming"] = False
    drawn["fabric"] |= {
        "planes": planes if planes > 1 else None,
        "plane_use": draw(st.sampled_from(("spray", "keep"))) if planes > 1 else None,
        "flow_control": "pfc",
        "headroom_bytes": headroom,
        "queue_bytes": headroom + draw(st.integers(2, 6)) * whole,
        **draw(SHARING),
    }
    hosts = Fabric.model_validate(drawn["fabric"]).tree.machines
    if draw(st.booleans()):
        pairs = [(host, host % 2) for host in range(2, hosts)] or [(0, 1)]
        drawn["collective"] = {
            "matrix": "pairs",
            "message_bytes": draw(st.integers(4, 30)) * drawn["packets"]["payload_bytes"],
            "pairs": pairs,
        }

    try:
        return Scenario.model_validate(drawn)
    except ValidationError:
        assume(False)
        raise
