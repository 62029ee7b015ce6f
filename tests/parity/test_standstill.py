"""A run that can go on for ever without an end is given up on all networks, for the same reason."""

import re
from collections.abc import Callable
from typing import Literal

import pytest

import sim
from emulation.errors import EmulationError
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    Loss,
    Scenario,
    Transport,
)
from fattree.units import PS_PER_US
from tests.naive import network as naive
from tests.python_network.fabric import PythonFabric

Recovery = Literal["erasure", "sack"]

NEVER_AVOIDED = Failures(
    events=(
        FailureEvent(link="agg0_0-core0_0", down_ns=1_500),
        FailureEvent(link="edge0_1-agg0_1", down_ns=0),
    ),
    convergence_rtt=float("inf"),
)
# So few packets that SACK's timeouts must double, and a host that nothing leaves.
FEW = Collective(message_bytes=2 * 4096)
SHORT = Fabric(k=4, latency_ns=100, queue_bytes=20_000)
DEAF = Failures(losses=(Loss(host="h1_0_0", share=1),))


def told(run: Callable[[], object]) -> tuple[str, float, str]:
    """Return how many flows a run that cannot end leaves, since when it stands still, and why."""
    with pytest.raises((sim.UnfinishedError, EmulationError)) as stopped:
        run()
    matched = re.search(
        r"(\d+) flow.* no progress since (.*) µs, and nothing can change that any more: (.*)",
        str(stopped.value),
    )
    assert matched
    return matched[1], float(matched[2]), matched[3]


@pytest.mark.parametrize(
    ("policy", "recovery", "failures", "reason"),
    [
        ("flow", "erasure", NEVER_AVOIDED, "edge0_1-agg0_1, agg0_0-core0_0 are down for good"),
        ("flow", "sack", NEVER_AVOIDED, "edge0_1-agg0_1, agg0_0-core0_0 are down for good"),
        ("ofan", "erasure", DEAF, "h1_0_0 loses all its packets"),
    ],
)
def test_what_leads_nowhere_for_ever_is_given_up_by_all_at_once(
    policy: str, recovery: Recovery, failures: Failures, reason: str
) -> None:
    stuck = Scenario(
        policy=policy,
        seed=3,
        fabric=SHORT,
        collective=FEW,
        transport=Transport(recovery=recovery),
        failures=failures,
    )
    expected = told(lambda: sim.run(stuck))
    assert expected[2].startswith(reason)
    assert expected == told(lambda: sim.run(stuck, threads=2))
    assert expected == told(lambda: simulated.run(stuck))
    assert expected == told(lambda: VirtualFabric(stuck).run())
    assert expected == told(lambda: PythonFabric(stuck).run())

    with pytest.raises(TimeoutError, match="no progress") as stopped:
        naive.run(stuck)
    plain = naive.Network(stuck)
    since_us = int(str(stopped.value).split()[3]) / PS_PER_US
    assert f"{since_us:.3f}" == f"{expected[1]:.3f}"
    assert len(plain.flows) > int(expected[0]) > 0


def test_what_go_back_n_sends_behind_a_missing_packet_is_no_try() -> None:
    """Links lose every fifth packet, and a timeout sends dozens of which the first one counts."""
    places = ("edge0_0", "edge1_0")
    lossy = Scenario(
        policy="host_flowlet_ar",
        seed=43,
        fabric=Fabric(k=2, latency_ns=1),
        collective=Collective(message_bytes=40 * 4096),
        transport=Transport(recovery="go_back_n", timer_floor_rtt=0),
        failures=Failures(losses=tuple(Loss(switch=switch, share=0.2) for switch in places)),
    )
    assert sim.run(lossy).end_ps == naive.run(lossy).end_ps


def test_a_run_that_waits_for_a_link_is_not_given_up() -> None:
    event = FailureEvent(link="edge0_0-agg0_0", down_ns=0, up_ns=20e6)
    back = Failures(events=(event,), convergence_rtt=float("inf"))
    late = Scenario(
        policy="flow",
        fabric=SHORT,
        collective=FEW,
        transport=Transport(recovery="sack"),
        failures=back,
    )
    result = sim.run(late)
    assert result.end_ps > 20e6 * 1000
    assert result.end_ps == VirtualFabric(late).run().end_ps
    assert result.end_ps == naive.run(late).end_ps
