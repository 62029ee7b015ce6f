"""A run is the same whatever the number of threads: every flow, every port, every sample."""

import pickle
from typing import Any

import numpy as np
import pytest

from fattree.experiment.failures import Loss
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
from sim.arrays import network
from sim.errors import UnfinishedError
from sim.kernels.state import CLOCK, LIVE, SPARE
from sim.kernels.windows import REACHED
from sim.runs import threads
from sim.runs.engine import run
from sim.runs.results import Result
from sim.runs.threads import Crew, Nodes

SMALL = Collective(message_bytes=24 * 4096)


def scenario(policy: str = "ofan", **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=4), "collective": SMALL, "seed": 5, **settings}
    )


def everything(result: Result) -> bytes:
    """Return all that a run has measured, but for its own time and memory."""
    kept = {
        name: getattr(result, name)
        for name in Result.__dataclass_fields__
        if name not in ("cpu_s", "scenario", "flows")
    }
    return pickle.dumps(kept)


@pytest.mark.parametrize("policy", POLICIES)
def test_two_threads_do_what_one_does(policy: str) -> None:
    case = scenario(policy)
    assert everything(run(case, threads=2)) == everything(run(case))


@pytest.mark.parametrize(
    "settings",
    [
        {
            "failures": Failures(
                events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500, up_ns=9000),),
                convergence_rtt=0.5,
            )
        },
        {
            "fabric": Fabric(k=4, queue_bytes=20_000),
            "transport": Transport(recovery="sack"),
            "policy": "jsq",
        },
        {"collective": Collective(matrix="ring", message_bytes=16 * 4096, steps=3)},
        {"load_balancer": LoadBalancer(queue_staleness_ns=700), "policy": "switch_pkt_ar"},
        {
            "fabric": Fabric(k=4, queue_bytes=150_000, flow_control="pfc"),
            "collective": Collective(
                matrix="pairs",
                message_bytes=24 * 4096,
                pairs=tuple((host, host % 2) for host in range(2, 16)),
            ),
            "transport": Transport(recovery="sack", congestion="dcqcn"),
            "policy": "rsq",
        },
    ],
    ids=["a link fails and comes back", "drops and SACK", "ring", "stale queues", "pauses"],
)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_does_what_one_does(settings: dict[str, Any], threads: int) -> None:
    case = scenario(**settings)
    assert everything(run(case, sample_ps=1_000_000, threads=threads)) == everything(
        run(case, sample_ps=1_000_000)
    )


def test_a_pool_that_grows_again_and_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = scenario(collective=Collective(matrix="all_to_all", message_bytes=8 * 4096))
    expected = everything(run(case))
    monkeypatch.setattr(network, "_likely_chunks", lambda *_: 1)
    assert everything(run(case, threads=3)) == everything(run(case)) == expected


def test_threads_end_where_flows_do_not_finish() -> None:
    with pytest.raises(UnfinishedError) as single:
        run(scenario(), horizon_ps=3_000_000)
    with pytest.raises(UnfinishedError) as double:
        run(scenario(), horizon_ps=3_000_000, threads=2)
    assert str(single.value) == str(double.value)


@pytest.mark.slow
def test_a_thousand_hosts_are_the_same_with_two_threads() -> None:
    case = Scenario(
        policy="rsq", fabric=Fabric(k=16), collective=Collective(message_bytes=256 * 1024)
    )
    results = [run(case, threads=threads) for threads in (1, 2, 2, 4)]
    assert len({everything(result) for result in results}) == 1
    assert np.all(results[0].done_ps > 0)


def test_one_thread_serves_stretches_with_few_packets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: dict[int, int] = {}
    serve = Crew.serve

    def counted(crew: Crew, *arguments: Any) -> int:
        rounds[few] = rounds.get(few, 0) + 1
        return serve(crew, *arguments)

    monkeypatch.setattr(Crew, "serve", counted)
    monkeypatch.setattr(threads, "STRETCH", 1)
    case = scenario(failures=Failures(losses=(Loss(link="edge0_0-agg0_0", share=0.2),)))
    expected = everything(run(case))
    for few in (0, 100, 10_000):
        monkeypatch.setattr(threads, "FEW_PACKETS", few)
        assert everything(run(case, threads=3)) == expected

    # Four rounds a window: in all, in some, and in the first stretch alone, which has two windows.
    assert rounds[0] > rounds[100] > rounds[10_000] == 8


@pytest.mark.parametrize(("few", "is_needed"), [(17, True), (18, True), (19, False)])
def test_few_packets_are_less_than_the_threshold(
    few: int, is_needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "FEW_PACKETS", few)
    case = network.build(scenario())
    crew = Crew([None, None])
    window_ps = case.world.constants.window_ps

    def alone(world: Any, _buffers: Any, until_ps: int) -> int:
        world.counters[CLOCK] = until_ps
        world.counters[LIVE] = 18
        return REACHED

    crew.is_needed = False
    nodes = Nodes(lambda *_: 0, lambda *_: 0, alone, next_event=lambda _: 0)
    assert (
        threads.advance_side_by_side(case.world, nodes, threads.STRETCH * window_ps, crew)
        == REACHED
    )
    crew.close()
    assert crew.is_needed == is_needed


def test_one_thread_has_the_spare_chunks_of_all() -> None:
    case = network.build(scenario())
    total = int(case.world.counters[SPARE])
    parts = threads._split(case.world, 3)
    threads._spread(parts, 3)
    assert 0 < case.world.counters[SPARE] < total
    spares: list[int] = []

    def alone(world: Any, _buffers: Any, _until_ps: int) -> int:
        spares.append(int(world.counters[SPARE]))
        return REACHED

    crew = Crew([None] * 3)
    nodes = Nodes(lambda *_: 0, lambda *_: 0, alone)
    threads._alone(threads._Shared(case.world, parts, nodes, crew), 1)
    crew.close()
    assert spares == [total]


def test_a_world_has_its_spare_chunks_again_after_all_threads() -> None:
    case = network.build(scenario())
    total = int(case.world.counters[SPARE])
    crew = Crew([None] * 3)
    # Hosts and switches do nothing: the window ends, with chunks shared out.
    nodes = Nodes(lambda *_: 1, lambda *_: 1, lambda *_: REACHED, next_event=lambda _: 0)
    threads.advance_side_by_side(case.world, nodes, case.world.constants.window_ps, crew)
    crew.close()
    assert case.world.counters[SPARE] == total
