"""The simulator's kernels against the plain model, to the picosecond: flows, ports, counts."""

from dataclasses import fields
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from fattree.errors import FabricError
from fattree.experiment.hosts import Congestion
from fattree.experiment.model import (
    Collective,
    Degraded,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Loss,
    Packets,
    Scenario,
    Transport,
)
from fattree.policies import POLICIES
from sim.runs.results import Ports
from tests import naive
from tests.naive.host import Flow
from tests.naive.nscc import NsccWindow
from tests.naive.sack import Sack
from tests.parity.drawing import pairs
from tests.parity.scenarios import (
    HORIZON_PS,
    IN_ORDER,
    NSCC_INCAST,
    TRIMMING,
    TRIMMING_SLOW,
    scenarios,
)

MOST_TRANSMISSIONS = 20_000
CONGESTION = ("fixed", "mswift", "nscc")
# Tried each time, the others with the slow tests.
FEW_ACKS = {("host_pkt_ar", "fixed", 3), ("ofan", "mswift", 3), ("host_pkt_ar", "nscc", 64)}
LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))


def of_naive(network: naive.Network) -> dict[str, Any]:
    flows, links = network.flows, [host.link for host in network.hosts]
    return {
        "end": network.end_ps,
        "cct": network.cct_ps,
        "start": [flow.started_ps for flow in flows],
        "first": [flow.sender.pacer.first_ps for flow in flows],
        "done": [flow.done_ps for flow in flows],
        "transmissions": [flow.transmissions for flow in flows],
        "freezes": [flow.freezes for flow in flows],
        "returns": [flow.returns for flow in flows],
        "ports": [of_port(port, network.end_ps) for port in network.ports.values()],
        "hosts": [(port.load_bytes, port.packets) for port in links],
        "host_lost": sum(port.lost for port in links),
        "unroutable": network.unrouted,
    }


def of_port(port: naive.Port, end_ps: int) -> dict[str, int]:
    return {
        "packets": port.packets,
        "bytes": port.load_bytes,
        "dropped": port.drops,
        "trimmed": port.trims,
        "marked": port.marks,
        "lost_to_failure": port.lost,
        "max_queue_bytes": port.max_bytes,
        "queue_byte_ps": port.byte_ps(end_ps),
        # Nothing is paused here (`tests/parity/test_pauses.py` has the pauses).
        **dict.fromkeys(("pauses", "paused_ps", "victims"), 0),
    }


def of_sim(result: sim.Result) -> dict[str, Any]:
    names = [field.name for field in fields(Ports)]
    columns = [getattr(result.ports, name).tolist() for name in names]
    return {
        "end": result.end_ps,
        "cct": result.cct_ps,
        "start": result.start_ps.tolist(),
        "first": result.first_ps.tolist(),
        "done": result.done_ps.tolist(),
        "transmissions": result.transmissions.tolist(),
        "freezes": result.freezes.tolist(),
        "returns": result.returns.tolist(),
        "ports": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
        "hosts": list(zip(result.host_bytes.tolist(), result.host_packets.tolist(), strict=True)),
        "host_lost": result.host_lost,
        "unroutable": result.unroutable,
    }


def assert_same(scenario: Scenario) -> None:
    try:
        result = sim.run(scenario, horizon_ps=HORIZON_PS)
    except FabricError:
        with pytest.raises(naive.Refused):
            naive.run(scenario, HORIZON_PS)
        return
    except sim.UnfinishedError:
        with pytest.raises(TimeoutError):
            naive.run(scenario, HORIZON_PS)
        return

    # Fewer than 1 in 200 send into dead links all the while: minutes for the plain model.
    assume(result.transmissions.sum() <= MOST_TRANSMISSIONS)
    assert_ends_the_same(scenario, result)


def assert_ends_the_same(scenario: Scenario, result: sim.Result) -> None:
    """Compare a finished run with the plain model, which has an end to come to: it cannot give up.

    Senders that go on in vain for long may still have luck.
    """
    assert of_sim(result) == of_naive(naive.run(scenario, result.end_ps, gives_up=False))


@pytest.mark.slow
def test_senders_in_vain_for_long_may_have_luck() -> None:
    # Fifteen erasure senders at one receiver, whose buffer holds two packets: some have no news
    # for 20 us and 280 packets each.
    chosen = Scenario(
        policy="jsq",
        seed=2682834141,
        fabric=Fabric(k=4, rate_gbps=100, latency_ns=1, queue_bytes=636),
        packets=Packets(payload_bytes=256, ack_bytes=200, gap_bytes=100),
        collective=Collective(matrix="all_to_all", message_bytes=193),
        transport=Transport(
            recovery="erasure",
            congestion="dcqcn",
            timer_floor_rtt=2.5,
            pacing_jitter=0.1,
            random_phases=True,
            sharing="active",
            trimming=True,
            packets_per_ack=4,
        ),
        load_balancer=LoadBalancer(queue_staleness_ns=100, ecn_percent=3.3, ecn_chance=0.01),
        failures=Failures(
            events=(
                FailureEvent(switch="edge2_0", down_ns=1299, up_ns=2059),
                FailureEvent(host="h3_0_0", down_ns=9648, up_ns=10148, times=3, every_ns=596),
                FailureEvent(switch="edge2_0", down_ns=37, up_ns=537),
            ),
            convergence_rtt=0,
            local_repair=True,
        ),
    )
    result = sim.run(chosen, horizon_ps=HORIZON_PS)
    with pytest.raises(TimeoutError, match="no progress"):
        naive.run(chosen, HORIZON_PS)
    assert_ends_the_same(chosen, result)


def test_what_waits_behind_a_slow_link_is_no_standstill() -> None:
    # For 160 us no host hears of anything, thousands of the round trips of an empty fabric.
    slow = (
        Degraded(link="edge2_0-agg2_2", rate=0.1),
        Degraded(host="h0_0_0", rate=0.25),
        Degraded(switch="edge0_0", rate=0.25, direction="down"),
    )
    scenario = Scenario(
        policy="host_flowlet_ar",
        fabric=Fabric(k=6, latency_ns=1, edge_agg_gbps=400),
        collective=Collective(matrix="hierarchical_ring", message_bytes=8192, steps=3),
        transport=Transport(timer_floor_rtt=2.5, rate_limit=0.9, sharing="active"),
        failures=Failures(rate=0.3, degraded=slow),
        seed=48,
    )
    assert of_sim(sim.run(scenario)) == of_naive(naive.run(scenario, HORIZON_PS))


@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=3)
def test_the_simulator_does_what_the_plain_model_does(policy: str, data: st.DataObject) -> None:
    assert_same(data.draw(scenarios(policy)))


@pytest.mark.parametrize("traffic", [TRIMMING, TRIMMING_SLOW], ids=["whole links", "slow links"])
@pytest.mark.parametrize(
    ("policy", "congestion"),
    pairs(
        ["host_pkt_ar", "uet_bitmap", "mrc", "mrc_srv6", "host_flowlet_ar", "ofan"],
        CONGESTION,
    ),
)
def test_what_is_trimmed_is_sent_again_alike(
    policy: str, congestion: Congestion, traffic: dict[str, Any]
) -> None:
    transport = Transport(recovery="sack", congestion=congestion, trimming=True)
    chosen = Scenario(policy=policy, transport=transport, **traffic)
    result = sim.run(chosen, horizon_ps=HORIZON_PS)
    assert result.ports.trimmed.sum() > 100
    assert of_sim(result) == of_naive(naive.run(chosen, HORIZON_PS))


@pytest.mark.parametrize(
    ("policy", "congestion", "packets_per_ack"),
    [
        pytest.param(*combination, marks=() if combination in FEW_ACKS else pytest.mark.slow)
        for combination in product(("host_pkt_ar", "ofan"), CONGESTION, (3, 64))
    ],
)
def test_few_acks_are_the_same_ones(
    policy: str, congestion: Congestion, packets_per_ack: int
) -> None:
    transport = Transport(
        recovery="sack", congestion=congestion, trimming=True, packets_per_ack=packets_per_ack
    )
    chosen = Scenario(policy=policy, transport=transport, **TRIMMING)
    assert of_sim(sim.run(chosen, horizon_ps=HORIZON_PS)) == of_naive(naive.run(chosen, HORIZON_PS))


@pytest.mark.parametrize(
    ("policy", "transport"),
    [
        ("flow", Transport(recovery="go_back_n")),
        ("host_pkt_ar", Transport(recovery="go_back_n", congestion="dcqcn")),
        ("switch_pkt_ar", IN_ORDER),
        ("rsq", IN_ORDER.model_copy(update={"congestion": "dcqcn", "packets_per_ack": 3})),
        ("rsq", Transport(recovery="sack", congestion="dcqcn", trimming=True)),
        ("ofan", Transport(congestion="dcqcn")),
    ],
    ids=[
        "go-back-N",
        "go-back-N and DCQCN",
        "in order",
        "in order and DCQCN",
        "trimming, SACK and DCQCN",
        "erasure and DCQCN",
    ],
)
def test_rates_are_cut_and_packets_sent_again_alike(policy: str, transport: Transport) -> None:
    marks = LoadBalancer(ecn_percent=10, ecn_full_percent=80, ecn_chance=0.5)
    chosen = Scenario(policy=policy, transport=transport, load_balancer=marks, **TRIMMING)
    result = sim.run(chosen, horizon_ps=HORIZON_PS)
    assert result.ports.marked.sum() > 100
    assert of_sim(result) == of_naive(naive.run(chosen, HORIZON_PS))


def nscc_window(flow: Flow) -> NsccWindow:
    assert isinstance(flow.sender, Sack) and isinstance(flow.sender.congestion, NsccWindow)
    return flow.sender.congestion


def test_nscc_cuts_and_adapts_quickly_alike() -> None:
    chosen = Scenario(policy="host_pkt", **NSCC_INCAST)
    network = naive.run(chosen, HORIZON_PS)
    assert of_sim(sim.run(chosen)) == of_naive(network)
    windows = [nscc_window(flow) for flow in network.flows]
    assert any(window.cut_ps > 0 for window in windows)
    assert any(window.to_ignore > 0 for window in windows)


@pytest.mark.parametrize("message_bytes", [98304, 131072])
def test_rounds_meet_nacks_of_packets_that_are_known(message_bytes: int) -> None:
    # A NACK of a packet that is known reported the round's next hole as arrived. It was sent again,
    # and no longer known: in the sim its flow stalled, in the plain model it counted twice.
    slow = (
        Degraded(link="edge0_0-agg0_0", rate=0.25),
        Degraded(link="edge1_0-agg1_0", rate=0.25, direction="down"),
    )
    chosen = Scenario(
        fabric=Fabric(k=2, rate_gbps=800.0, latency_ns=1.0, queue_bytes=20854),
        packets=Packets(payload_bytes=4096, header_bytes=62, ack_bytes=200, gap_bytes=20),
        collective=Collective(message_bytes=message_bytes),
        transport=Transport(
            recovery="sack",
            pacing_jitter=0.1,
            random_phases=False,
            rate_limit=0.9,
            trimming=True,
        ),
        failures=Failures(degraded=slow),
        seed=0,
    )
    assert_ends_the_same(chosen, sim.run(chosen))


def test_rotations_of_switch_pkts_orders_go_the_same_way() -> None:
    # With two uplinks a rotation and its opposite are equal, so k = 6.
    collective = Collective(message_bytes=20 * 4096)
    chosen = Scenario(policy="switch_pkt", fabric=Fabric(k=6), collective=collective)
    assert of_sim(sim.run(chosen)) == of_naive(naive.run(chosen, HORIZON_PS))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=72)
def test_a_thousand_more_scenarios_are_the_same(policy: str, data: st.DataObject) -> None:
    assert_same(data.draw(scenarios(policy)))


@pytest.mark.parametrize("policy", ["ofan_jsq_start", "jsq", "rsq", "switch_pkt_ar"])
def test_edges_look_at_no_queue_beyond_their_own(policy: str) -> None:
    # Aggs have three uplinks and edges have 1: behind an edge's come other switches' ports.
    fabric = Fabric(
        pods=3, edges_per_pod=2, hosts_per_edge=3, aggs_per_pod=1, cores_per_agg=3, rate_gbps=400
    )
    chosen = Scenario(
        policy=policy,
        fabric=fabric,
        collective=Collective(matrix="all_to_all", message_bytes=4096),
        transport=Transport(random_phases=False),
        seed=0,
    )
    assert of_sim(sim.run(chosen)) == of_naive(naive.run(chosen, HORIZON_PS))


def test_what_starts_when_a_link_becomes_slow_is_slow() -> None:
    def found(until_ns: float | None, at_ns: float) -> int:
        slow = tuple(
            Degraded(switch=agg, rate=0.5, at_ns=at_ns, until_ns=until_ns)
            for agg in ("agg0_0", "agg0_1")
        )
        chosen = Scenario(
            fabric=Fabric(k=4),
            collective=Collective(matrix="pairs", pairs=((0, 2),), message_bytes=4096),
            transport=Transport(random_phases=False),
            failures=Failures(degraded=slow),
        )
        result = sim.run(chosen)
        assert of_sim(result) == of_naive(naive.run(chosen, HORIZON_PS))
        return result.cct_ps

    # A packet has left its host after 41.58 ns, and is at its edge 500 ns later.
    whole = found(at_ns=1, until_ns=541.58)
    assert whole == found(at_ns=10_000, until_ns=None)
    assert found(at_ns=1, until_ns=541.581) == whole + 41_580
    assert found(at_ns=541.58, until_ns=541.581) == whole + 41_580
    assert found(at_ns=541.581, until_ns=541.582) == whole


def test_host_drs_hosts_without_a_way_send_into_the_void() -> None:
    down = FailureEvent(link="agg0_0-core0_0", down_ns=0, up_ns=20_000)
    chosen = Scenario(
        policy="host_dr",
        fabric=Fabric(k=2),
        collective=Collective(message_bytes=4096),
        failures=Failures(events=(down,)),
    )
    result = sim.run(chosen)
    assert result.unroutable > 0
    assert of_sim(result) == of_naive(naive.run(chosen, HORIZON_PS))


@pytest.mark.parametrize("planes", [2, 3, pytest.param(8, marks=pytest.mark.slow)])
def test_planes_share_mrcs_values_alike(planes: int) -> None:
    chosen = Scenario(
        policy="mrc",
        fabric=Fabric(k=4, planes=planes, queue_bytes=30_000),
        collective=Collective(message_bytes=planes * 60 * 4096),
        transport=Transport(recovery="sack", trimming=True),
        failures=Failures(losses=(Loss(link="edge0_0-agg0_0", share=0.2),)),
    )
    assert of_sim(sim.run(chosen)) == of_naive(naive.run(chosen, HORIZON_PS))
