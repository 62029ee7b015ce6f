"""The virtual network, its P4 programs and its hosts' bytes against the run model in plain Python,
to the picosecond.
"""

from typing import Any

import pytest

from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario, Transport
from fattree.policies import POLICIES
from tests import naive

SMALL = Collective(message_bytes=24 * 4096)
CORE_LINK_FAILS = Failures(
    events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500, up_ns=20_000),), convergence_rtt=0.5
)


def scenario(policy: str, **settings: Any) -> Scenario:
    return Scenario(
        policy=policy, **{"fabric": Fabric(k=4), "collective": SMALL, "seed": 3, **settings}
    )


def assert_same(outcome: Outcome, model: naive.Network) -> None:
    assert [flow.done_ps for flow in outcome.flows] == [flow.done_ps for flow in model.flows]
    assert [flow.transmissions for flow in outcome.flows] == [
        flow.transmissions for flow in model.flows
    ]
    assert outcome.cct_ps == model.cct_ps
    for port in outcome.ports:
        twin = model.ports[port.switch, port.port]
        assert (port.max_queue_bytes, port.dropped, port.marked) == (
            twin.max_bytes,
            twin.drops,
            twin.marks,
        )
        assert port.mean_queue_bytes is not None
        assert round(port.mean_queue_bytes * outcome.end_ps) == twin.byte_ps(outcome.end_ps)
    accounts = outcome.accounts
    assert (accounts.sent, accounts.received, accounts.unrouted) == (
        model.sent,
        model.received,
        model.unrouted,
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_every_load_balancer_follows_the_run_model(policy: str) -> None:
    chosen = scenario(policy)
    assert_same(VirtualFabric(chosen).run(), naive.run(chosen))


@pytest.mark.parametrize("policy", ["simple_rr", "switch_pkt", "host_dr", "ofan"])
def test_a_link_that_fails_and_comes_back_is_the_same_everywhere(policy: str) -> None:
    chosen = scenario(policy, failures=CORE_LINK_FAILS)
    outcome = VirtualFabric(chosen).run()
    assert outcome.accounts.lost > 0
    assert_same(outcome, naive.run(chosen))


@pytest.mark.parametrize(
    "settings",
    [
        {"transport": Transport(recovery="sack"), "fabric": Fabric(k=4, queue_bytes=50_000)},
        {"transport": Transport(pacing_jitter=0.5, random_phases=False)},
        {"failures": Failures(rate=0.05)},
        {"collective": Collective(matrix="ring", message_bytes=16 * 4096, steps=3)},
        {"collective": Collective(matrix="all_to_all", message_bytes=3 * 4096)},
        {"fabric": Fabric(k=2, rate_gbps=400, latency_ns=100)},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_other_settings_follow_the_run_model(settings: dict[str, Any]) -> None:
    chosen = scenario("ofan", **settings)
    assert_same(VirtualFabric(chosen).run(), naive.run(chosen))
