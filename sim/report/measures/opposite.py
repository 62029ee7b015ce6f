"""Two opposite flows alone: the best of many random phases, and when packets leave and ACKs come
back (appendix B).
"""

import numpy as np

from fattree.experiment import Scenario
from sim.engine import advanced, run
from sim.network import build
from sim.report.figure import Measured

BLOCK = 100
LOOKS = 72


def measure(scenario: Scenario) -> Measured:
    """Return the record of the fastest of BLOCK seeds from the scenario's on, and `times_ps`,
    `sent`, `acked` of its first flow.
    """
    seeds = range(scenario.seed, scenario.seed + BLOCK)
    best = min(
        (run(scenario.model_copy(update={"seed": seed})) for seed in seeds),
        key=lambda result: result.cct_ps,
    )

    times = np.linspace(0, best.end_ps + 1, LOOKS).astype(np.int64).tolist()
    seen = [_progress(best.scenario, time_ps) for time_ps in times]
    values = {
        "times_ps": tuple(map(float, times)),
        "sent": tuple(float(sent) for sent, _ in seen),
        "acked": tuple(float(acked) for _, acked in seen),
    }

    return Measured(**best.record.model_dump(), values=values)


def _progress(scenario: Scenario, time_ps: int) -> tuple[int, int]:
    """Return how many packets the first flow has sent by a time, and how many of them are
    acknowledged.
    """
    sender = advanced(build(scenario), time_ps).flows.senders[0]
    return int(sender.transmissions), int(sender.acked)
