"""Machine code and the Python network show the same counters while they run, and go on alike."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from emulation.errors import FailedRunError
from emulation.virtual.fabric import VirtualFabric
from fattree.demand import traffic
from fattree.experiment.model import Scenario
from tests.parity.engines import native
from tests.python_network.fabric import PythonFabric

FAILING = {"events": [{"link": "agg0_0-core0_0", "down_ns": 2000, "up_ns": 9000}]}
SCENARIOS: dict[str, dict[str, Any]] = {
    "ofan": {"policy": "ofan"},
    "flow, failing": {"policy": "flow", "failures": FAILING | {"convergence_rtt": 0.5}},
    "jsq, trimming": {
        "policy": "jsq",
        "fabric": {"k": 4, "queue_bytes": 10_000},
        "transport": {"trimming": True},
    },
    "ofan, pausing": {
        "policy": "ofan",
        "fabric": {"k": 4, "queue_bytes": 300_000, "flow_control": "pfc"},
        "failures": FAILING,
    },
    "host_dr, all-to-all": {
        "policy": "host_dr",
        "collective": {"matrix": "all_to_all", "message_bytes": 3 * 4096},
    },
    "all-reduce, in which flows wait for others": {
        "policy": "ofan",
        "collective": {"matrix": "all_reduce", "message_bytes": 16 * 4096},
    },
    "erasure": {"policy": "host_pkt", "transport": {"recovery": "erasure"}, "failures": FAILING},
}
# No event is at an odd picosecond but by chance: the two differ in whether it has happened.
STEP_PS = 777_777
BEYOND = 20


def both(settings: dict[str, Any]) -> tuple[VirtualFabric, PythonFabric]:
    small: dict[str, Any] = {"fabric": {"k": 4}, "collective": {"message_bytes": 32 * 4096}}
    scenario = Scenario.model_validate(small | settings)
    return native(scenario), PythonFabric(scenario)


@pytest.mark.parametrize("settings", SCENARIOS.values(), ids=SCENARIOS)
def test_counters_are_the_same_at_every_instant(settings: dict[str, Any]) -> None:
    ours, theirs = both(settings)
    assert not ours.is_finished
    beyond = 0
    time_ps = 1
    while beyond < BEYOND:
        ours.advance(time_ps)
        theirs.advance(time_ps)
        assert ours.clock.now_ps == theirs.clock.now_ps == time_ps
        for ours_now, theirs_now in (
            (ours.port_reading(), theirs.port_reading()),
            (ours.flow_reading(), theirs.flow_reading()),
        ):
            for field in fields(ours_now):
                our_column, their_column = (
                    getattr(now, field.name) for now in (ours_now, theirs_now)
                )
                assert np.array_equal(our_column, their_column), (time_ps, field.name)

        for switch, ports in enumerate(theirs.network.ports):
            for number, port in ports.items():
                depth = port.queue.depth_packets(time_ps)
                assert ours.timed.packets.depth(switch, number) == depth, (time_ps, switch, number)

        assert ours.is_finished == theirs.is_finished
        beyond += ours.is_finished
        time_ps += STEP_PS

    assert not ours.port_reading().queued.any()
    assert np.array_equal(ours.flow_reading().acked, traffic.flows(ours.scenario).packets)


DEAD = {"events": [{"link": "edge0_0-agg0_0", "down_ns": 0}], "convergence_rtt": float("inf")}


@pytest.mark.parametrize(
    ("settings", "limit_ps"),
    [
        ({}, 50_000_000),
        ({}, 10**15),
        # Probes never end, and change nothing either.
        ({"controller": {"detection": "probe", "probe_interval_us": 20}}, 10**15),
    ],
)
def test_both_give_up_alike(settings: dict[str, Any], limit_ps: int) -> None:
    messages = []
    for fabric in both({"policy": "flow", "failures": DEAD} | settings):
        with pytest.raises(FailedRunError) as error:
            while True:
                fabric.give_up(limit_ps)
                fabric.advance(fabric.clock.now_ps + STEP_PS)

        messages.append(str(error.value).partition(" µs, ")[2])

    assert messages[0] == messages[1] != ""


def test_who_waits_gets_a_part() -> None:
    for fabric in both({"policy": "ofan"}):
        fabric.advance(10**9, is_late=lambda: True)
        assert 0 < fabric.clock.now_ps < 10**9


def test_a_failure_in_idle_time_is_learned_of_at_its_time() -> None:
    late = {"events": [{"link": "agg0_0-core0_0", "down_ns": 50_000}], "convergence_rtt": 1}
    installations = []
    for fabric in both({"policy": "ofan", "failures": late}):
        fabric.advance(200_000_001)
        assert fabric.is_finished
        installations.append(list(map(repr, fabric.installations)))

    assert installations[0] == installations[1] != []
    assert "failed_ps=50000000" in installations[0][0]
