"""A connection that outlives its messages: plain model, kernels, real bytes to the picosecond."""

from typing import Any, Literal

import pytest

import sim
from fattree.errors import ExperimentError
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Loss,
    Scenario,
    Transport,
)
from hostagent.rules import rules
from tests import naive
from tests.parity.drawing import one_in, pairs
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_naive_against_sim import of_naive, of_sim
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

POLICIES = ("mrc", "mrc_srv6", "uet_bitmap", "host_pkt_ar")
SACK = Transport(recovery="sack")
LOSSY = Failures(
    events=(FailureEvent(link="edge0_0-agg0_1", down_ns=2_000, up_ns=60_000),),
    losses=(Loss(link="edge1_0-agg1_0", share=0.05),),
    convergence_rtt=float("inf"),
)
# A host's link is away for longer than all its values last.
OUT = Failures(events=(FailureEvent(host="h0_0_0", down_ns=3_000, up_ns=60_000),))
# One message after another, and several at once.
TRAFFIC: dict[str, dict[str, Any]] = {
    "in turn": {
        "collective": Collective(matrix="ring", message_bytes=8 * 24 * 4096, steps=4),
        "failures": LOSSY,
    },
    "at once": {
        "collective": Collective(
            matrix="pairs", message_bytes=90 * 4096, pairs=((0, 5), (0, 5), (4, 1), (0, 9), (0, 5))
        ),
        "failures": LOSSY,
        "fabric": Fabric(k=4, queue_bytes=30_000),
        "transport": Transport(recovery="sack", congestion="nscc", trimming=True),
    },
    "no value left": {
        "collective": Collective(
            matrix="pairs", message_bytes=400 * 4096, pairs=((0, 5), (0, 5), (4, 1))
        ),
        "failures": OUT,
    },
    "go-back-N": {
        "collective": Collective(
            matrix="pairs", message_bytes=40 * 4096, pairs=((0, 5), (0, 5), (4, 1))
        ),
        "failures": LOSSY,
        "transport": Transport(recovery="go_back_n", congestion="dcqcn", reorder_packets=64),
    },
}


def connected(policy: str, connections: Literal["message", "pair"], **settings: Any) -> Scenario:
    return Scenario(
        policy=policy,
        **{"fabric": Fabric(k=4), "transport": SACK, "seed": 3, **settings},
        load_balancer=LoadBalancer(connections=connections),
    )


@pytest.mark.parametrize(("policy", "traffic"), pairs(POLICIES, tuple(TRAFFIC)))
def test_messages_share_a_connection_alike(policy: str, traffic: str) -> None:
    scenario = connected(policy, "pair", **TRAFFIC[traffic])
    result = sim.run(scenario, horizon_ps=HORIZON_PS)
    assert of_sim(result) == of_naive(naive.run(scenario, HORIZON_PS))
    assert_same(PythonFabric(scenario).run(), result)
    apart = sim.run(connected(policy, "message", **TRAFFIC[traffic]), horizon_ps=HORIZON_PS)
    assert of_sim(apart) != of_sim(result)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_message_of_a_pair_is_a_connection_of_its_own(policy: str) -> None:
    settings: dict[str, Any] = {
        "collective": Collective(message_bytes=200 * 4096),
        "failures": LOSSY,
    }
    both = (connected(policy, "pair", **settings), connected(policy, "message", **settings))
    first, second = (of_sim(sim.run(scenario)) for scenario in both)
    assert first == second


@pytest.mark.parametrize("policy", one_in(2, ["mrc", "mrc_srv6"]))
def test_erasure_senders_without_a_value_wait_alike(policy: str) -> None:
    scenario = Scenario(
        policy=policy,
        fabric=Fabric(k=4),
        collective=Collective(message_bytes=400 * 4096),
        failures=OUT,
        transport=Transport(pacing_jitter=0.5),
    )
    result = sim.run(scenario)
    assert of_sim(result) == of_naive(naive.run(scenario, HORIZON_PS))
    assert_same(PythonFabric(scenario).run(), result)
    # Probes alone leave: of the 2,400 packets of another 100 us the link loses few.
    (event,) = OUT.events
    longer = Failures(events=(event.model_copy(update={"up_ns": 160_000}),))
    more = sim.run(scenario.model_copy(update={"failures": longer}))
    assert 0 < more.record.lost_to_failure - result.record.lost_to_failure < 100


def test_flowlets_remember_no_paths() -> None:
    both = (
        connected("host_flowlet_ar", "pair", **TRAFFIC["in turn"]),
        connected("host_flowlet_ar", "message", **TRAFFIC["in turn"]),
    )
    first, second = (of_sim(sim.run(scenario, horizon_ps=HORIZON_PS)) for scenario in both)
    assert first == second


def test_erasure_coding_has_no_connections() -> None:
    erasure = Transport(recovery="erasure")
    with pytest.raises(ExperimentError, match=r'connections = "pair" needs transport\.recovery'):
        rules(connected("mrc", "pair", transport=erasure))

    assert rules(connected("ofan", "pair", transport=erasure))
    assert rules(connected("mrc", "message", transport=erasure))
