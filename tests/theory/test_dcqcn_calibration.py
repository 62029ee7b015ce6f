"""DCQCN behaves as in its publication: full links, fair shares, queues between its bounds."""

from typing import NamedTuple

import pytest

import sim
from fattree.experiment.model import Collective, Fabric, LoadBalancer, Scenario, Transport
from tests.parity.drawing import one_in

MESSAGE = 256 << 20
# Zhu et al. (SIGCOMM 2015): 40 Gbit/s, marks from 5 KB on, with a chance of 1 % below 200 KB.
BOUNDS = 5_000, 200_000


class Incast(NamedTuple):
    """The CCT over the link's time for the data, the first flow's time over the last flow's."""

    over_ideal: float
    evenness: float
    mean_bytes: float
    repeated: int


def incast(senders: int, recovery: str) -> Incast:
    """Let hosts of other pods send to host 0, with the publication's rate and bounds."""
    scenario = Scenario(
        policy="flow",
        fabric=Fabric(k=4, rate_gbps=40, queue_bytes=0, threshold_bytes=BOUNDS[1]),
        load_balancer=LoadBalancer(
            ecn_percent=100 * BOUNDS[0] / BOUNDS[1], ecn_full_percent=100, ecn_chance=0.01
        ),
        collective=Collective(
            matrix="pairs",
            message_bytes=MESSAGE,
            pairs=tuple((4 + sender, 0) for sender in range(senders)),
        ),
        # The first round trips fill a queue without limit: nothing is lost, nothing times out.
        transport=Transport.model_validate(
            {
                "recovery": recovery,
                "congestion": "dcqcn",
                "sack_threshold": 1000,
                "timer_floor_rtt": 1000,
            }
        ),
    )
    result = sim.run(scenario)
    packets = senders * MESSAGE // 4096
    times_ps = result.done_ps - result.start_ps
    return Incast(
        over_ideal=result.cct_ps / (packets * scenario.slot_ps),
        evenness=times_ps.min() / times_ps.max(),
        mean_bytes=float(result.ports.queue_byte_ps.max()) / result.end_ps,
        repeated=int(result.transmissions.sum()) - packets,
    )


@pytest.mark.parametrize("recovery", ["sack", "go_back_n"])
@pytest.mark.parametrize("senders", one_in(2, [2, 8]))
def test_an_incast_fills_its_link_evenly(senders: int, recovery: str) -> None:
    """The link carries 91 and 95 % of its capacity, the first cuts and their effects included."""
    seen = incast(senders, recovery)
    assert seen.over_ideal < 1.12
    assert seen.evenness > 0.9
    assert BOUNDS[0] < seen.mean_bytes < BOUNDS[1]
    assert seen.repeated == 0
