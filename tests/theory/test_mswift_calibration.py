"""MSwift's publication against ours: REPS labels, 128 hosts, 8 MB (docs/congestion.md).

Published: 13 to 15 % with MSwift, 26 % with Lazy TCP's rule alone, and plain Swift's collapse under
spraying. Which statistic of the flows that is, and of which network, is not known here.
"""

from typing import NamedTuple

import numpy as np
import pytest

from fattree.experiment.hosts import Congestion
from fattree.experiment.model import Collective, Fabric, LoadBalancer, Scenario, Transport
from sim.runs.engine import run

SEEDS = (1, 2, 3)

# The ECN threshold of REPS's own publications; the paper's 10 % makes its paths more uneven.
REPS_PERCENT = 20
PAPER_PERCENT = 10


class Increase(NamedTuple):
    """CCT, and the mean and the 99th percentile of the flows' times, in % over the bound."""

    cct: float
    mean: float
    p99: float


def measured(
    congestion: Congestion, sack_threshold: int, ecn_percent: int, policy: str = "host_pkt_ar"
) -> Increase:
    """Return the mean over the seeds."""
    rows = []
    for seed in SEEDS:
        result = run(
            Scenario(
                policy=policy,
                seed=seed,
                fabric=Fabric(k=8),
                collective=Collective(message_bytes=8 << 20),
                transport=Transport(
                    recovery="sack", congestion=congestion, sack_threshold=sack_threshold
                ),
                load_balancer=LoadBalancer(ecn_percent=ecn_percent),
            )
        )
        times = (result.done_ps - result.start_ps) / result.bound_ps - 1
        rows.append((result.increase, times.mean(), np.percentile(times, 99)))

    return Increase(*(100 * np.mean(rows, axis=0)))


@pytest.mark.slow
def test_mswift_is_where_its_publication_has_it() -> None:
    """ "13 to 15 %" with MSwift; ten seeds give 15 (CCT) and 14 (99th percentile)."""
    mswift = measured("mswift", 32, REPS_PERCENT)
    assert 12 <= mswift.cct <= 20
    assert 10 <= mswift.p99 <= 18


@pytest.mark.slow
def test_the_lazy_rule_alone_is_where_the_publication_has_it() -> None:
    """ "26 %" with the lazy rule alone; ten seeds give 29 (CCT) and 24 (99th percentile)."""
    lazy = measured("lazy_swift", 32, REPS_PERCENT)
    assert 20 <= lazy.cct <= 40
    assert 18 <= lazy.p99 <= 30


@pytest.mark.slow
@pytest.mark.parametrize("ecn_percent", [REPS_PERCENT, PAPER_PERCENT])
def test_the_median_beats_the_lazy_rule_and_plain_swift_collapses(ecn_percent: int) -> None:
    mswift = measured("mswift", 32, ecn_percent)
    lazy = measured("lazy_swift", 32, ecn_percent)
    # Three duplicate ACKs, as in TCP.
    plain = measured("swift", 3, ecn_percent)
    assert lazy.cct > 1.25 * mswift.cct
    assert lazy.p99 > 1.25 * mswift.p99
    assert plain.cct > 150 and plain.cct > 3 * lazy.cct


@pytest.mark.slow
def test_random_spraying_without_ecn_gives_the_same_order() -> None:
    """Labels drawn anew need no ECN threshold: ten seeds give 13, 29 and 387 % (CCT)."""
    mswift, lazy = (
        measured(congestion, 32, PAPER_PERCENT, "host_pkt")
        for congestion in ("mswift", "lazy_swift")
    )
    assert 10 <= mswift.cct <= 18
    assert 20 <= lazy.cct <= 40


@pytest.mark.slow
def test_with_the_papers_threshold_mswift_stays_below_35_percent() -> None:
    mswift = measured("mswift", 32, PAPER_PERCENT)
    assert mswift.cct < 35
    assert mswift.mean < 18
