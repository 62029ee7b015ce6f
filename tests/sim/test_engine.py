"""The engine: the bound, determinism, conservation, ends.

Equality with the plain model is in tests/parity.
"""

import os
import subprocess
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Scenario,
    Transport,
)
from fattree.policies import POLICIES
from fattree.shape.topology import SWITCH_LAYERS
from sim import Result, UnfinishedError, run
from sim.arrays.network import build
from sim.kernels.state import World
from sim.runs import engine
from sim.runs.layers import by_layer
from sim.runs.results import Ports

BOUND_PS = 17_056_940
SMALL = Fabric(k=4)
SHORT = Collective(message_bytes=20 * 4096)


def statistics(result: Result) -> list[list[int]]:
    """Return everything that a run has measured per port and flow."""
    arrays = [getattr(result.ports, field.name) for field in fields(Ports)]
    return [
        array.tolist()
        for array in (*arrays, result.done_ps, result.transmissions, result.host_bytes)
    ]


@pytest.mark.parametrize("k", [4, 8])
@pytest.mark.parametrize("policy", POLICIES)
def test_two_opposite_flows_come_close_to_the_bound(policy: str, k: int) -> None:
    last = k**3 // 4 - 1
    pair = Collective(matrix="pairs", pairs=((0, last), (last, 0)))
    runs = (
        run(Scenario(policy=policy, seed=seed, fabric=Fabric(k=k), collective=pair)).cct_ps
        for seed in range(1, 201)
    )
    assert next(cct_ps for cct_ps in runs if cct_ps < BOUND_PS * 1.001) >= BOUND_PS


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_gives_the_same_run(policy: str) -> None:
    first, again, other_seed = (
        run(Scenario(policy=policy, seed=seed, fabric=SMALL, collective=SHORT))
        for seed in (3, 3, 4)
    )
    assert statistics(first) == statistics(again) != statistics(other_seed)


@pytest.mark.parametrize("policy", ["host_pkt_ar", "jsq", "host_dr", "ofan_jsq_start"])
def test_samples_and_a_tight_pool_change_nothing(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(policy=policy, fabric=SMALL, collective=SHORT)
    plain = run(scenario)
    assert statistics(run(scenario, sample_ps=12_345)) == statistics(plain)
    monkeypatch.setattr("sim.arrays.network._likely_chunks", lambda *_: 0)
    assert statistics(run(scenario)) == statistics(plain)


def test_kernels_are_plain_python_as_well() -> None:
    lines = [
        "from fattree.experiment.model import Collective, Fabric, Scenario, Transport",
        "from sim import run",
        "short = Collective(message_bytes=6 * 4096)",
        "sack = Transport(recovery='sack', congestion='mswift')",
        "base = Scenario(fabric=Fabric(k=4), collective=short, transport=sack)",
        "for policy in ('host_pkt_ar', 'switch_pkt', 'jsq', 'host_dr', 'ofan_jsq_start'):",
        "    result = run(base.model_copy(update={'policy': policy}))",
        "    print(result.cct_ps, result.record.max_queue_bytes, result.packet_hops)",
    ]
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", "\n".join(lines)],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for disabled in ("0", "1")
    ]
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("queue_bytes", [9_000, 800_000])
def test_every_packet_is_somewhere(queue_bytes: int) -> None:
    scenario = Scenario(
        policy="flow", fabric=Fabric(k=4, queue_bytes=queue_bytes), collective=SHORT
    )
    network = build(scenario)
    result = engine.simulate(network, None, None, 0)
    tree, links = scenario.tree, network.world.links
    onto_hosts = by_layer(tree, result.ports.packets)[4].sum()
    into_switches = result.host_packets.sum() + result.ports.packets.sum() - onto_hosts
    offered = result.ports.packets.sum() + result.ports.dropped.sum()
    on_the_way = into_switches - offered
    assert 0 <= on_the_way < 2 * len(result.flows) * scenario.bdp_packets
    assert (links.occupancy >= 0).all()
    assert (result.ports.dropped.sum() > 0) == (queue_bytes == 9_000)


def test_all_to_all_ends_with_every_flow_done() -> None:
    result = run(
        Scenario(fabric=SMALL, collective=Collective(matrix="all_to_all", message_bytes=5 * 4096))
    )
    assert (result.done_ps <= result.end_ps).all()
    assert result.end_ps == result.done_ps.max()
    assert 0 <= result.increase < 0.2


def test_flows_wait_for_those_they_follow() -> None:
    result = run(
        Scenario(
            fabric=SMALL, collective=Collective(matrix="ring", message_bytes=3 * 4096, steps=3)
        )
    )
    for flow in range(len(result.flows)):
        for earlier in result.flows.waits_for(flow).tolist():
            assert (
                result.start_ps[flow] >= result.done_ps[earlier] - result.scenario.zero_load_rtt_ps
            )
            assert result.start_ps[flow] > 0
    assert result.cct_ps == result.end_ps


def test_packets_into_a_dead_link_are_lost_until_routes_follow() -> None:
    link = FailureEvent(link="edge0_0-agg0_0", down_ns=0)
    stale, prompt = (
        run(
            Scenario(
                policy="rsq",
                fabric=SMALL,
                collective=SHORT,
                failures=Failures(events=(link,), convergence_rtt=rtts),
            )
        )
        for rtts in (0.5, 0)
    )
    assert stale.ports.lost_to_failure.sum() > 0 == prompt.ports.lost_to_failure.sum()
    assert stale.ports.lost_to_failure.nonzero()[0].tolist() == [2, 8 * 4]


def test_link_that_comes_back_is_used_again() -> None:
    flap = FailureEvent(link="edge0_0-agg0_0", down_ns=500, up_ns=1_500)
    result = run(
        Scenario(
            policy="rsq",
            fabric=SMALL,
            collective=SHORT,
            failures=Failures(events=(flap,), convergence_rtt=0.01),
        )
    )
    assert 0 < result.ports.lost_to_failure.sum() < 30
    assert result.ports.packets[2] > 20


def test_local_repair_loses_less() -> None:
    link = FailureEvent(link="edge0_0-agg0_0", down_ns=1_000)
    lost = [
        run(
            Scenario(
                policy="rsq",
                fabric=SMALL,
                collective=SHORT,
                failures=Failures(
                    events=(link,), convergence_rtt=float("inf"), local_repair=is_local
                ),
            )
        ).ports.lost_to_failure
        for is_local in (False, True)
    ]
    assert lost[0][2] > 20 > lost[1][2]
    assert lost[1][8 * 4] > 0


def test_flow_that_cannot_finish_is_named() -> None:
    down = tuple(FailureEvent(link=f"edge0_0-agg0_{agg}", down_ns=0, up_ns=10**8) for agg in (0,))
    scenario = Scenario(
        policy="flow",
        seed=2,
        fabric=SMALL,
        collective=Collective(
            matrix="pairs", pairs=((0, 15), (1, 14), (15, 0)), message_bytes=4096
        ),
        failures=Failures(events=down, convergence_rtt=float("inf")),
    )
    with pytest.raises(
        UnfinishedError,
        match=r"not finished after 50 µs: flow \d from h\d_\d_\d to .* of 1 packets",
    ):
        run(scenario, horizon_ps=50_000_000)


def senders_to_one(count: int, k: int) -> Scenario:
    pairs = tuple((host, 0) for host in range(1, count + 1))
    return Scenario(fabric=Fabric(k=k), collective=Collective(matrix="pairs", pairs=pairs))


def test_however_many_senders_to_one_host_end() -> None:
    incast = senders_to_one(120, k=8)
    result = run(incast)
    assert np.all(result.done_ps < 2**62)
    # Far longer than any of them would take alone.
    assert result.end_ps > 120 * 256 * incast.slot_ps


@pytest.mark.slow
def test_500_senders_to_one_host_end() -> None:
    result = run(senders_to_one(500, k=16))
    assert np.all(result.done_ps < 2**62)


def test_a_run_ends_at_the_horizon_that_the_experiment_sets() -> None:
    scenario = senders_to_one(3, k=4)
    end_ps = run(scenario).end_ps
    enough = scenario.model_copy(update={"horizon_us": end_ps / 1e6 + 0.001})
    assert run(enough).end_ps == end_ps
    short = scenario.model_copy(update={"horizon_us": end_ps / 1e6 - 0.001})
    with pytest.raises(UnfinishedError, match=r"flow\(s\) not finished after"):
        run(short)


@pytest.mark.parametrize("settings", [{}, {"queue_staleness_ns": 100}])
def test_idle_time_costs_no_windows(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    legs: list[int] = []
    plain = engine._advance

    def counted(*arguments: Any) -> tuple[World, int]:
        legs.append(arguments[-1])
        return plain(*arguments)

    monkeypatch.setattr(engine, "_advance", counted)
    far = Scenario(
        policy="jsq",
        fabric=Fabric(k=4, latency_ns=1e9),
        collective=SHORT,
        load_balancer=LoadBalancer(**settings),
    )
    result = run(far, on_progress=lambda _share: None)
    assert result.end_ps > 12 * 10**12
    # Twelve seconds have twelve million windows.
    assert len(legs) < 1_000


def test_old_queue_lengths_make_shortest_queues_worse() -> None:
    fresh, stale = (
        run(
            Scenario(
                policy="jsq", collective=SHORT, load_balancer=LoadBalancer(queue_staleness_ns=age)
            )
        ).record.max_queue_layers
        for age in (0, 1_000)
    )
    assert stale[SWITCH_LAYERS.index("E>A")] > 2 * fresh[SWITCH_LAYERS.index("E>A")]


def test_marks_follow_the_threshold() -> None:
    few, many, none = (
        run(
            Scenario(policy=policy, load_balancer=LoadBalancer(ecn_percent=percent))
        ).ports.marked.sum()
        for policy, percent in (("host_pkt_ar", 4), ("host_pkt_ar", 1), ("rsq", None))
    )
    assert many > few > none == 0


def test_series_reaches_the_maximum_and_ends_empty() -> None:
    result = run(Scenario(policy="rsq"), sample_ps=50_000)
    assert result.series is not None
    assert (
        result.series.longest.max()
        <= result.ports.max_queue_bytes.max()
        < 1.3 * result.series.longest.max()
    )
    assert np.diff(result.series.times_ps).tolist() == [50_000] * (len(result.series.times_ps) - 1)


def test_sack_and_mswift_complete_every_scheme() -> None:
    transport = Transport(recovery="sack", congestion="mswift")
    for policy in POLICIES:
        result = run(
            Scenario(
                policy=policy,
                fabric=Fabric(k=4, queue_bytes=30_000),
                collective=SHORT,
                transport=transport,
            )
        )
        assert (result.done_ps <= result.end_ps).all()
