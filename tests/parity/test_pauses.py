"""Pauses of programs, on the virtual network, of kernels, of the plain model: alike to the ps."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.outcomes.outcome import Outcome
from fattree.errors import FabricError
from fattree.experiment.model import Fabric, LoadBalancer, Scenario
from fattree.policies import POLICIES
from sim.arrays.network import build
from sim.runs.engine import advanced
from tests.naive.lossless import LosslessNetwork
from tests.parity.drawing import one_in
from tests.parity.engines import outcome_of
from tests.parity.pausing import (
    COUNTS,
    HORIZON_PS,
    LENIENT,
    all_of_naive,
    all_of_sim,
    assert_simulator_same,
    crowded,
    incast,
    of_naive,
    paused,
)

# More take the plain model minutes.
MOST_TRANSMISSIONS = 8_000


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


def assert_same(chosen: Scenario) -> Outcome:
    outcome = outcome_of(chosen, HORIZON_PS)
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    assert of_virtual(outcome) == of_naive(network)
    assert outcome.accounts.unaccounted == 0
    assert_simulator_same(chosen, network)
    return outcome


@pytest.mark.parametrize("policy", one_in(2, ["flow", "ofan", "jsq", "host_dr", "host_pkt_ar"]))
def test_an_incast_pauses_alike_and_drops_nothing(policy: str) -> None:
    outcome = assert_same(incast(policy))
    assert sum(port.pauses for port in outcome.ports) > 10
    assert sum(port.paused_ps for port in outcome.ports) > 0
    assert outcome.accounts.dropped == 0


def test_with_too_little_headroom_the_same_packets_are_dropped() -> None:
    fabric = Fabric(k=4, queue_bytes=60_000, flow_control="pfc", headroom_bytes=20_000)
    outcome = assert_same(incast("flow", fabric=fabric))
    assert outcome.accounts.dropped > 0


@pytest.mark.parametrize("policy", one_in(6, POLICIES))
@given(st.data())
@LENIENT
def test_drawn_pauses_are_the_same(policy: str, data: st.DataObject) -> None:
    assert_same(data.draw(paused(policy)))


@pytest.mark.slow
def test_many_senders_pause_long_and_alike() -> None:
    # Pauses go from tier to tier and back, again and again.
    chosen = incast("rsq", seed=3)
    longer = chosen.collective.model_copy(update={"message_bytes": 70 * 4096})
    outcome = assert_same(chosen.model_copy(update={"collective": longer}))
    assert sum(port.pauses for port in outcome.ports) > 80
    assert sum(port.victims for port in outcome.ports) > 0


def test_late_queue_lengths_are_those_before_what_leaves_now() -> None:
    for staleness_ns in (41.78, 1_000):
        options = LoadBalancer(queue_staleness_ns=staleness_ns)
        chosen = incast("jsq", load_balancer=options)
        network = LosslessNetwork(chosen)
        network.run(HORIZON_PS)
        assert_simulator_same(chosen, network)


def test_samples_see_what_waits_before_what_leaves_now() -> None:
    chosen = incast("rsq")
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    # Multiples of a slot, at which packets leave.
    series = sim.run(chosen, sample_ps=100 * 41_780).series
    assert series is not None and len(series.times_ps) > 50
    assert series.total.sum(axis=1).tolist() == [
        sum(server.stale_bytes_at(time_ps) for server in network.servers.values())
        for time_ps in series.times_ps.tolist()
    ]


@pytest.mark.parametrize(
    ("policy", "use"),
    [
        ("flow", "spray"),
        ("ofan", "keep"),
        pytest.param("flow", "keep", marks=pytest.mark.slow),
        pytest.param("ofan", "spray", marks=pytest.mark.slow),
        pytest.param("host_dr", "spray", marks=pytest.mark.slow),
        pytest.param("host_dr", "keep", marks=pytest.mark.slow),
    ],
)
def test_links_of_planes_are_paused_alike(policy: str, use: str) -> None:
    fabric = {"k": 4, "planes": 2, "plane_use": use, "queue_bytes": 150_000, "flow_control": "pfc"}
    pairs = [(host, 0) for host in range(1, 16) for _ in range(2)]
    collective = {"matrix": "pairs", "message_bytes": 40 * 4096, "pairs": pairs}
    outcome = assert_same(incast(policy, fabric=fabric, collective=collective))
    # Of both planes: switches of the second follow those of the first, tier by tier.
    edges = {port.switch for port in outcome.ports if port.pauses and port.switch < 16}
    assert min(edges) < 8 <= max(edges)
    assert outcome.accounts.dropped == 0


@pytest.mark.parametrize("policy", one_in(6, POLICIES, first=1))
@given(st.data())
@settings(LENIENT, max_examples=3)
def test_crowded_buffers_of_planes_pause_alike(policy: str, data: st.DataObject) -> None:
    assert_crowd_same(data.draw(crowded(policy, planes=data.draw(st.integers(2, 3)))))


# The link between aggs and cores is as slow as hosts' are.
SLOW_ENDS = {"rate_gbps": 100, "edge_agg_gbps": 800, "agg_core_gbps": 100, "latency_ns": 1}


@pytest.mark.parametrize(
    ("fabric", "packets", "count"),
    [
        # A pause and its end both wait behind one packet.
        (SLOW_ENDS | {"queue_bytes": 6 * 4096}, {"gap_bytes": 0}, 3),
        # A control frame is the shortest of all.
        (SLOW_ENDS | {"queue_bytes": 6 * 4096}, {"gap_bytes": 0, "ack_bytes": 400}, 4),
        # Frames, packets and links of one clock: all at once.
        ({"latency_ns": 0.64, "queue_bytes": 4 * 4096}, {"gap_bytes": 0}, 4),
        ({"latency_ns": 5.12, "queue_bytes": 7 * 4096}, {"gap_bytes": 64}, 4),
    ],
    ids=["two frames wait", "short frames", "a frame long", "eight frames long"],
)
def test_what_happens_at_one_instant_happens_in_one_order(
    fabric: dict[str, Any], packets: dict[str, Any], count: int
) -> None:
    chain = {"pods": 2, "edges_per_pod": 1, "hosts_per_edge": 3, "aggs_per_pod": 1}
    headroom = fabric["queue_bytes"] - 2 * 4096
    chosen = Scenario.model_validate(
        {
            "policy": "flow",
            "fabric": chain
            | {"cores_per_agg": 1, "flow_control": "pfc", "headroom_bytes": headroom}
            | fabric,
            "packets": {"payload_bytes": 4096 - 62} | packets,
            "collective": {
                "matrix": "pairs",
                "message_bytes": count * (4096 - 62),
                "pairs": list(permutations(range(6), 2)),
            },
            "transport": {
                "recovery": "go_back_n",
                "timer_floor_rtt": 100,
                "random_phases": False,
                "receiver_share": False,
            },
        }
    )
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    result = assert_simulator_same(chosen, network)
    assert result.ports.pauses.sum() > 10


def test_pauses_that_last_beyond_the_end_count_until_then() -> None:
    # Erasure coding's hosts send further symbols until they hear that no more are needed.
    chosen = incast(
        "flow",
        fabric={"k": 4, "queue_bytes": 40_000, "headroom_bytes": 25_000, "flow_control": "pfc"},
        collective={
            "matrix": "pairs",
            "message_bytes": 40 * 4096,
            "pairs": [(host, host % 2) for host in range(2, 16)],
        },
        transport={"recovery": "erasure"},
    )
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    result = assert_simulator_same(chosen, network)
    world = advanced(build(chosen), result.end_ps)
    assert (world.gates.since_ps < result.end_ps).sum() > 0


def assert_crowd_same(chosen: Scenario) -> None:
    try:
        result = sim.run(chosen, horizon_ps=HORIZON_PS)
    except FabricError:
        assume(False)
        raise
    except sim.UnfinishedError:
        with pytest.raises(TimeoutError):
            LosslessNetwork(chosen).run(HORIZON_PS)
        return

    assume(result.transmissions.sum() < MOST_TRANSMISSIONS)
    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    assert all_of_sim(result) == all_of_naive(network)


@pytest.mark.parametrize("policy", one_in(6, POLICIES))
@given(st.data())
@settings(LENIENT, max_examples=3)
def test_crowded_buffers_pause_alike_in_the_simulator(policy: str, data: st.DataObject) -> None:
    assert_crowd_same(data.draw(crowded(policy)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=60)
def test_a_thousand_more_crowds_pause_alike(policy: str, data: st.DataObject) -> None:
    assert_crowd_same(data.draw(crowded(policy)))
