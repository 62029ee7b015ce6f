"""Experiments drawn over all keys: no bound is broken, and networks agree to the picosecond.

A few of each load balancer are run each time, more with the slow tests, and any number by hand:
`pytest tests/parity/test_drawn.py -m slow --hypothesis-seed 7`, with DRAWN=2000 in the environment.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.errors import EmulationError
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Fabric, Scenario, Transport
from fattree.policies import POLICIES
from fattree.units import PS_PER_US
from sim.sweeps.accounts import refuse_impossible
from tests.naive.least import Least
from tests.parity import graphs
from tests.parity.pausing import crowded
from tests.parity.scenarios import HORIZON_PS, scenarios, virtual
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

# Of all runs, those of switches that pause and links that fail are a fourth.
DRAWN = int(os.environ.get("DRAWN", 200))
EACH = -(-DRAWN // (4 * len(POLICIES)))
# Some send into dead links all the while, which takes minutes where packets have bytes.
MOST_TRANSMISSIONS = 5_000
LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def experiments(draw: Any, policy: str) -> Scenario:
    """Draw an experiment: a matrix on any fabric, or a collective's graph on a small fat-tree."""
    chosen: Scenario = draw(scenarios(policy))
    if draw(st.integers(0, 3)) or chosen.fabric.planes or chosen.tree.hosts < graphs.TREE.hosts:
        return chosen

    # Names of hosts are those of a fat-tree.
    collective = draw(graphs.collectives(hosts=graphs.FEW_HOSTS))
    fabric = chosen.fabric.model_dump(include={"rate_gbps", "latency_ns", "queue_bytes"})
    small = collective.model_dump(exclude_unset=True) | {"message_bytes": 6 * graphs.PAYLOAD}
    return Scenario.model_validate(
        chosen.model_dump(exclude_unset=True, exclude={"fabric", "collective", "failures"})
        | {"fabric": {"k": 4, **fabric}, "collective": Collective.model_validate(small)}
    )


def judge(drawn: Scenario) -> None:
    """Run an experiment on both networks: neither runs or ends it where the other does not."""
    experiment = virtual(drawn).model_copy(update={"horizon_us": HORIZON_PS / PS_PER_US})
    try:
        result = sim.run(experiment)
    except FabricError:
        with pytest.raises(FabricError):
            PythonFabric(experiment).run()
        return
    except sim.UnfinishedError:
        # It is the same virtual time that ends both; to run it packet by packet takes minutes.
        return

    assert result.bound_ps <= result.cct_ps
    assert result.sending_bound_ps <= result.sending_cct_ps
    refuse_impossible(result)
    if not experiment.is_graph:
        assert Least(experiment).cct_ps() <= result.cct_ps

    assume(result.transmissions.sum() <= MOST_TRANSMISSIONS)
    try:
        outcome = PythonFabric(experiment).run()
    except EmulationError as error:
        raise AssertionError(f"the simulator ends after {result.end_ps} ps: {error}") from error

    assert_same(outcome, result)


def test_a_limit_of_hosts_spaces_beginnings_and_slows_no_packet() -> None:
    # Two NICs send 2,048 bytes each at 0.37 of 800 Gbit/s: 2,110 and a gap of 20 take 57,568 ps.
    # Then the ACK of 64 bytes passes two links at the full rate, 640 ps each, after 1,000 ps each.
    planes = Fabric(edges_per_pod=1, hosts_per_edge=2, aggs_per_pod=1, planes=2, latency_ns=1)
    limited = Transport(rate_limit=0.37, random_phases=False)
    pair = Collective(message_bytes=4096)
    scenario = Scenario(
        policy="host_pkt_ar", seed=0, fabric=planes, transport=limited, collective=pair
    )
    cct_ps = sim.run(scenario).cct_ps
    assert cct_ps == 57_568 + 2 * (640 + 1_000)
    assert Least(scenario).cct_ps() <= cct_ps


@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=1)
def test_what_is_drawn_is_the_same(policy: str, data: st.DataObject) -> None:
    judge(data.draw(experiments(policy)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=3 * EACH)
def test_much_more_that_is_drawn_is_the_same(policy: str, data: st.DataObject) -> None:
    judge(data.draw(experiments(policy)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=EACH)
def test_what_pauses_and_fails_is_the_same(policy: str, data: st.DataObject) -> None:
    # As long as a fault and pauses refuse each other, both networks do.
    judge(data.draw(crowded(policy, has_faults=True)))
