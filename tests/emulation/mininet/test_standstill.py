"""Real processes: a run that leads nowhere for ever ends by itself, and gives the reason."""

import pytest

from emulation.errors import FailedRunError, NetworkError
from emulation.mininet.building import mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario

pytestmark = [pytest.mark.root, pytest.mark.slow]
STUCK = Scenario(
    policy="flow",
    seed=3,
    fabric=Fabric(k=4, rate_gbps=0.0016, latency_ns=6e6),
    collective=Collective(message_bytes=16 * 4096),
    failures=Failures(
        events=(FailureEvent(link="edge0_1-agg0_1", down_ns=3e7),), convergence_rtt=float("inf")
    ),
)


def test_a_flow_led_into_a_dead_link_for_ever_is_given_up() -> None:
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))

    reason = "nothing can change that any more: edge0_1-agg0_1 is down for good"
    with mininet_fabric(STUCK) as fabric, pytest.raises(FailedRunError, match=reason):
        run_on(fabric)
