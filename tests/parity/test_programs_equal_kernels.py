"""Every load balancer by its P4 program in the simulator's windows against its kernel."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from controller.errors import PlanError
from emulation.errors import EmulationError
from emulation.programs.switch_program import built_in, size_of
from emulation.virtual.control import Control
from emulation.virtual.events import Clock
from emulation.virtual.simulated import SimulatedFabric, run
from fattree.errors import FabricError
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
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.indexes import NativeIndex
from sim import UnfinishedError
from tests.emulation.softswitch.dense_cells import walked
from tests.parity.drawing import one_in
from tests.parity.scenarios import SLOW, TRIMMING_SLOW, scenarios, virtual

# The last packet has 100 bytes: to switches it is of the ACKs' class.
SMALL = Collective(message_bytes=23 * 4096 + 100)
BREAKS = (
    FailureEvent(link="agg0_0-core0_0", down_ns=1500),
    FailureEvent(link="edge1_0-agg1_1", down_ns=2500, up_ns=9000),
)
FAILING = {
    f"G = {rtts:g} RTT": Failures(events=BREAKS, convergence_rtt=rtts)
    for rtts in (0, 2, float("inf"))
}
COLUMNS = ("first_ps", "done_ps", "transmissions", "freezes", "returns", "host_bytes")
PORTS = (
    "packets",
    "bytes",
    "dropped",
    "marked",
    "lost_to_failure",
    "max_queue_bytes",
    "queue_byte_ps",
)


def scenario(policy: str = "ofan", k: int = 4, **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=k), "collective": SMALL, "seed": 5, **settings}
    )


def assert_same(ours: sim.Result, theirs: sim.Result) -> None:
    assert (ours.end_ps, ours.unroutable) == (theirs.end_ps, theirs.unroutable)
    for name in COLUMNS:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in PORTS:
        assert np.array_equal(getattr(ours.ports, name), getattr(theirs.ports, name)), name


@pytest.mark.parametrize("failures", [Failures(), *FAILING.values()], ids=["no failure", *FAILING])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_program_equals_its_kernel(policy: str, failures: Failures) -> None:
    experiment = scenario(policy, failures=failures)
    try:
        theirs = sim.run(experiment)
    except UnfinishedError:
        with pytest.raises(EmulationError, match="flows are not complete"):
            run(experiment)
        return
    assert_same(run(experiment), theirs)


@pytest.mark.parametrize("policy", one_in(3, POLICIES, first=1))
def test_every_program_equals_its_kernel_at_k_8(policy: str) -> None:
    experiment = scenario(policy, k=8, collective=Collective(message_bytes=64 * 4096))
    assert_same(run(experiment, threads=2), sim.run(experiment))


@pytest.mark.parametrize("policy", ["mrc_srv6", "host_dr"])
def test_ways_in_headers_use_each_of_parallel_links(policy: str) -> None:
    fabric = Fabric(
        pods=3,
        edges_per_pod=2,
        hosts_per_edge=3,
        aggs_per_pod=2,
        cores_per_agg=2,
        edge_agg_links=2,
        agg_core_links=2,
    )
    experiment = scenario(policy, fabric=fabric, collective=Collective(message_bytes=8 * 4096))
    assert_same(run(experiment), sim.run(experiment))


def test_no_window_has_both_what_a_program_marks_and_who_sees_the_mark() -> None:
    # Links so short that between two packets many windows pass in which nothing happens.
    short = Fabric(k=4, latency_ns=1, queue_bytes=0, threshold_bytes=83_160)
    transport = Transport(random_phases=False, packets_per_ack=2)
    experiment = scenario(
        fabric=short,
        collective=Collective(message_bytes=8192),
        transport=transport,
        load_balancer=LoadBalancer(ecn_percent=3.3),
        seed=0,
    )
    theirs = sim.run(experiment)
    assert theirs.ports.marked.sum() > 10
    assert_same(run(experiment), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=4)
def test_scenarios_drawn_at_random_are_the_same(policy: str, data: st.DataObject) -> None:
    experiment = virtual(data.draw(scenarios(policy)))
    try:
        theirs = sim.run(experiment)
    except (FabricError, UnfinishedError):
        assume(False)
    assert_same(run(experiment), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("policy", ["ofan", "host_dr", "jsq", "host_pkt_ar"])
def test_programs_equal_kernels_in_large_fabrics(policy: str, k: int) -> None:
    experiment = scenario(policy, k=k)
    assert_same(run(experiment), sim.run(experiment))


def test_repair_and_drops_are_the_same() -> None:
    local = FAILING["G = 2 RTT"].model_copy(update={"local_repair": True})
    for changes in (
        {"failures": local},
        {"policy": "switch_pkt", "failures": local},
        {
            "policy": "jsq",
            "fabric": Fabric(k=4, queue_bytes=10_000),
            "transport": Transport(recovery="sack"),
        },
        {"failures": Failures(rate=0.05)},
    ):
        experiment = scenario(**changes)
        assert_same(run(experiment), sim.run(experiment))


@pytest.mark.parametrize("trims", [False, True], ids=["", "trimming"])
@pytest.mark.parametrize("policy", ["ofan", "jsq", "host_dr", "flow"])
def test_slow_links_are_the_same_with_threads_too(policy: str, trims: bool) -> None:
    trimming: dict[str, Any] = TRIMMING_SLOW | {"transport": Transport(trimming=True)}
    experiment = scenario(policy, **trimming if trims else {"failures": SLOW})
    theirs = sim.run(experiment)
    assert_same(run(experiment, threads=2), theirs)
    assert_same(sim.run(experiment, threads=2), theirs)


@pytest.mark.parametrize("level", ["edge_pointers", "agg_pointers"])
def test_programs_have_room_for_a_pointer_per_host(level: str) -> None:
    for k in (4, 8):
        fine = LoadBalancer.model_validate({level: "host"})
        experiment = scenario(k=k, load_balancer=fine)
        assert_same(run(experiment), sim.run(experiment))
        assert sim.run(experiment).end_ps != sim.run(scenario(k=k)).end_ps


def test_too_few_pointers_are_an_error_not_another_result() -> None:
    # The program of another setting of the same fabric.
    experiment = scenario(load_balancer=LoadBalancer(edge_pointers="host"))
    program = built_in(experiment.scheme.program, size_of(experiment.tree))
    with pytest.raises(PlanError, match="register pointers has 16 cells, group 15"):
        SimulatedFabric(experiment, program).run()


def keys_of(index: NativeIndex) -> set[int]:
    """Return keys that a table holds: the first and last of each prefix, and neighbours."""
    bits = sum(key.bits for key in index._spec.key)
    ones = (1 << bits) - 1
    bounds = {
        part
        for mask, slots in index._slots.items()
        for key, number in slots.array[slots.array[:, -1] > 0].tolist()
        for part in (key, key | (ones & ~(mask or ones)))
    }
    return bounds | {key ^ 1 << bit for key in bounds for bit in (0, bits // 2, bits - 1)}


def entry_of(index: NativeIndex, key: int) -> list[int]:
    """Return the words of the entry that machine code finds in a table of one-word keys."""
    number = 0
    if index._dense is not None:
        number = walked(index._dense, key)
    else:
        # The longest prefix has the greatest mask; 0 is that of a table of exact keys.
        for mask, slots in sorted(index._slots.items(), reverse=True):
            rows = slots.array[slots.array[:, -1] > 0]
            hit = rows[rows[:, 0] == np.uint64(key & mask if mask else key)]
            number = int(hit[0, -1]) if len(hit) and not number else number

    entry = index.entries[max(number - 1, 0)]
    return [int(entry[cell]) for cell in (context.ACTION, *_arguments(index))]


def _arguments(index: NativeIndex) -> range:
    return range(context.ENTRY_WORDS, index.entries.shape[1])


@pytest.mark.parametrize(
    ("policy", "k"),
    [
        *((policy, 4) for policy in ("ofan", "switch_pkt", "jsq", "host_dr", "ofan_jsq_start")),
        ("ofan", 8),
        *(pytest.param(policy, 8, marks=pytest.mark.slow) for policy in ("switch_pkt", "jsq")),
    ],
)
def test_tables_are_those_that_the_controller_writes(policy: str, k: int) -> None:
    experiment = scenario(policy, k=k, failures=Failures(rate=0.05))
    program = built_in(experiment.scheme.program, size_of(experiment.tree))
    control = Control(experiment, program, Clock())
    control.start(lambda *_: None, lambda *_: None)
    fabric = SimulatedFabric(experiment, program)
    fabric.timed.happen()
    dense = 0
    for switch, pipeline in zip(control.switches, fabric.pipelines, strict=True):
        assert switch.pipeline is not None
        assert switch.pipeline.memory is not None and pipeline.memory is not None
        for theirs, ours in zip(
            switch.pipeline.memory.indexes, pipeline.memory.indexes, strict=True
        ):
            dense += ours._dense is not None
            keys = keys_of(theirs) | keys_of(ours)
            assert {key: entry_of(ours, key) for key in keys} == {
                key: entry_of(theirs, key) for key in keys
            }

    # All that the controller fills: routes, and schedules or weights of those that have such.
    assert dense >= len(fabric.pipelines)
