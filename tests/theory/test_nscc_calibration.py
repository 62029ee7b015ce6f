"""NSCC behaves as in its publication: queues near the target delay (docs/congestion.md)."""

from typing import NamedTuple

import numpy as np
import pytest

from fattree.experiment.model import Collective, Fabric, LoadBalancer, Scenario, Transport
from sim.runs.engine import run

MESSAGE = 64 << 20


class Incast(NamedTuple):
    """The receiver's mean queue in target delays, and the CCT over its link's time for the data."""

    targets: float
    over_ideal: float
    dropped: int


def incast(senders: int, latency_ns: float = 500, ecn_percent: float | None = None) -> Incast:
    """Let hosts of other edges send to host 0, with buffers that hold the first windows."""
    scenario = Scenario(
        policy="ofan",
        seed=1,
        fabric=Fabric(k=8, queue_bytes=0, latency_ns=latency_ns),
        collective=Collective(
            matrix="pairs",
            message_bytes=MESSAGE,
            pairs=tuple((4 + sender, 0) for sender in range(senders)),
        ),
        # The first windows queue for longer than three RTTs: nothing is lost, nothing times out.
        transport=Transport(
            recovery="sack", congestion="nscc", sack_threshold=1000, timer_floor_rtt=64
        ),
        load_balancer=LoadBalancer(ecn_percent=ecn_percent),
    )
    result = run(scenario)
    assert result.transmissions.sum() == senders * MESSAGE // 4096
    mean_bytes = float(result.ports.queue_byte_ps.max()) / result.end_ps
    ideal_ps = senders * (MESSAGE // 4096) * scenario.slot_ps
    return Incast(
        targets=scenario.tx_ps(round(mean_bytes)) / scenario.zero_load_rtt_ps,
        over_ideal=result.cct_ps / ideal_ps,
        dropped=int(result.ports.dropped.sum()),
    )


@pytest.mark.parametrize("senders", [4, 8, 16])
def test_flows_into_one_receiver_queue_for_about_the_target_delay(senders: int) -> None:
    """Means over the whole run, first windows included: 0.97, 1.06 and 1.11 targets."""
    seen = incast(senders)
    assert 0.9 <= seen.targets <= 1.2
    assert seen.over_ideal <= 1.01 and seen.dropped == 0


@pytest.mark.parametrize("ecn_percent", [5, 50])
def test_the_target_sets_the_queue_and_not_where_marking_begins(ecn_percent: float) -> None:
    assert 0.9 <= incast(8, ecn_percent=ecn_percent).targets <= 1.2


def test_the_queue_grows_with_the_target() -> None:
    """Links twice as long, a target nearly twice as long: as many targets of queue."""
    assert 0.9 <= incast(8, latency_ns=1000).targets <= 1.2


def test_a_permutation_with_ofan_keeps_the_line_rate() -> None:
    """Ten seeds: 0.32 to 0.36 % over the bound, nothing marked, nothing sent again."""
    for seed in (1, 2, 3):
        result = run(
            Scenario(
                policy="ofan",
                seed=seed,
                fabric=Fabric(k=8),
                collective=Collective(message_bytes=8 << 20),
                transport=Transport(recovery="sack", congestion="nscc"),
            )
        )
        assert np.all(result.transmissions == (8 << 20) // 4096)
        assert result.ports.marked.sum() == 0
        assert 100 * result.increase < 0.5
