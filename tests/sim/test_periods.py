"""What repeats is skipped, and nothing in the result shows it: judged by runs of every packet."""

import random
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import sim
from fattree.experiment.model import (
    Collective,
    Fabric,
    Failures,
    LoadBalancer,
    Packets,
    Scenario,
    Transport,
)
from fattree.policies import POLICIES
from hostagent.transports.state import PACKET
from sim.arrays.network import build
from sim.errors import UnfinishedError
from sim.kernels.state import World
from sim.kernels.under_way import hash_under_way, move
from sim.runs.engine import advanced
from sim.runs.results import Ports, Result

MIB = 1 << 20
DRAWS = 60
REPEATING = ("ofan", "host_dr", "simple_rr")


def long_run(policy: str = "ofan", *, mib: int = 4, k: int = 4, **more: Any) -> Scenario:
    """Return an experiment long enough to repeat itself."""
    collective = Collective(message_bytes=mib * MIB)
    return Scenario(policy=policy, **{"fabric": Fabric(k=k), "collective": collective, **more})


def assert_same(skipping: Result, whole: Result) -> None:
    """Compare two results array by array, and their rows."""
    assert whole.skipped_ps == 0
    for field in fields(Ports):
        ours, theirs = getattr(skipping.ports, field.name), getattr(whole.ports, field.name)
        assert ours.tolist() == theirs.tolist(), field.name

    for field in fields(Result):
        ours, theirs = getattr(skipping, field.name), getattr(whole, field.name)
        if isinstance(ours, np.ndarray):
            assert ours.tolist() == theirs.tolist(), field.name

    assert (skipping.end_ps, skipping.unroutable) == (whole.end_ps, whole.unroutable)
    assert (skipping.cct_ps, skipping.bound_ps) == (whole.cct_ps, whole.bound_ps)


def compared(scenario: Scenario, **more: Any) -> float:
    """Run an experiment both ways; return which part of it was skipped."""
    skipping, whole = sim.run(scenario, **more), sim.run(scenario, skips=False)
    assert_same(skipping, whole)

    return skipping.skipped_ps / skipping.end_ps


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("policy", "k", "least"), [("ofan", 4, 0.7), ("host_dr", 4, 0.7), ("ofan", 8, 0.6)]
)
def test_a_rotation_repeats_itself(policy: str, k: int, least: float, seed: int) -> None:
    assert compared(long_run(policy, k=k, mib=16, seed=seed)) > least


@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
def test_hosts_that_failures_slow_down_repeat_themselves_at_their_own_pace(policy: str) -> None:
    # A sender's gap is longer than a packet and an ACK then, and a round takes that many gaps.
    assert compared(long_run(policy, mib=16, seed=1, failures=Failures(rate=0.05))) > 0.7


def test_a_message_twice_as_long_takes_twice_as_long() -> None:
    # A closed form beside the comparison: once all is periodic, a packet takes a slot.
    ends = [sim.run(long_run(mib=mib)).end_ps for mib in (16, 32, 48)]

    assert ends[2] - ends[1] == ends[1] - ends[0]


@pytest.mark.parametrize("policy", ["jsq", "host_pkt", "rsq", "switch_pkt_ar"])
def test_what_draws_at_random_never_repeats(policy: str) -> None:
    assert compared(long_run(policy)) == 0


@pytest.mark.parametrize(
    "transport",
    [
        {"recovery": "sack"},
        {"recovery": "sack", "congestion": "nscc"},
        {"sharing": "active"},
        {"pacing_jitter": 0.1},
    ],
    ids=str,
)
def test_runs_of_other_kinds_are_run_whole(transport: dict[str, Any]) -> None:
    assert compared(long_run(transport=Transport(**transport))) == 0


def test_routes_that_change_are_run_whole() -> None:
    failures = Failures.model_validate(
        {"events": [{"link": "agg0_0-core0_0", "down_ns": 20_000, "up_ns": 60_000}]}
    )

    assert compared(long_run(mib=8, failures=failures)) == 0


def test_a_run_with_samples_is_run_whole() -> None:
    result = sim.run(long_run(), sample_ps=1_000_000)

    assert result.skipped_ps == 0
    assert result.series is not None


def test_threads_skip_the_same() -> None:
    assert compared(long_run(mib=16), threads=2) > 0.5


def test_progress_does_not_stop_it() -> None:
    shares: list[float] = []

    assert compared(long_run(mib=16), on_progress=shares.append) > 0.5


def test_a_horizon_is_kept() -> None:
    told = []
    for skips in (True, False):
        with pytest.raises(UnfinishedError) as error:
            sim.run(long_run(mib=16), horizon_ps=123_456_789, skips=skips)

        told.append(str(error.value))

    assert told[0] == told[1]


def hashes(world: World, now_ps: int) -> list[int]:
    """Return the two hashes of what is under way."""
    found = np.zeros(2, dtype=np.uint64)
    hash_under_way(world, now_ps, found)

    return [int(each) for each in found]


FIELDS = ("flow", "psn", "pod", "edge", "index", "status", "label", "hash")


@pytest.mark.parametrize("field", ["time_ps", *FIELDS])
def test_packets_under_way_are_compared(field: str) -> None:
    now_ps = 20_000_000
    world = advanced(build(long_run()), now_ps)
    link = next(each for each in world.links if each.taken != each.tail)
    before = hashes(world, now_ps)
    assert before == hashes(world, now_ps)

    packet = world.pool.packets[link.taken]
    setattr(packet, field, getattr(packet, field) ^ 1)
    changed = hashes(world, now_ps)

    assert changed[0] != before[0]
    assert changed[1] != before[1]


def test_packets_that_are_later_and_further_look_the_same() -> None:
    now_ps, later_ps, further = 20_000_000, 7_000_000, 12
    world = advanced(build(long_run()), now_ps)
    before = hashes(world, now_ps)
    flows = world.flows

    room = np.zeros(int(flows.table.ring_length.max()), dtype=PACKET).view(np.recarray)
    move(world, later_ps, np.full(len(flows.table), further), room)
    flows.senders.sent += further

    assert hashes(world, now_ps + later_ps) == before


def drawn(seed: int) -> Scenario:
    """Draw an experiment in which queues fill, marks are set, links are dead or flows share."""
    draw = random.Random(seed)
    packets = draw.choice((0, 0, 20, 200))
    traffic: dict[str, Any] = {
        "matrix": draw.choice(("permutation", "permutation", "inter_pod_permutation", "pairs"))
    }
    if traffic["matrix"] == "pairs":
        traffic["pairs"] = tuple((host, draw.choice((host ^ 8, host ^ 4))) for host in range(16))

    collective = Collective(message_bytes=draw.randint(2 * MIB, 8 * MIB), **traffic)
    transport = Transport(
        rate_limit=draw.choice((None, None, 0.9, 0.5)),
        random_phases=draw.random() < 0.7,
        packets_per_ack=draw.choice((1, 1, 2, 4)),
        sharing="static",
    )
    failed = draw.choice((0, 0, 0.05, 0.1))
    policy = draw.choice((*REPEATING * 4, *POLICIES))
    if policy not in REPEATING:
        # Some need an ACK for every packet.
        transport = transport.model_copy(update={"packets_per_ack": 1})

    return Scenario(
        policy=policy,
        seed=draw.randint(1, 99),
        fabric=Fabric(k=4, queue_bytes=packets * 4178, rate_gbps=draw.choice((100, 400, 800))),
        collective=collective,
        transport=transport,
        failures=Failures(rate=failed),
        load_balancer=LoadBalancer(ecn_percent=draw.choice((0.5, 20, 80))),
        packets=Packets(gap_bytes=draw.choice((0, 20))),
    )


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(10, DRAWS, 10))]
)
def test_whatever_is_drawn_is_the_same(first: int) -> None:
    parts = [compared(drawn(seed)) for seed in range(first, first + 10)]

    assert max(parts) > 0.3
