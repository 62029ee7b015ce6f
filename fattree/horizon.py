"""When a run is given up: flows that routes never lead around a dead link would go on for ever."""

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from fattree.bounds import bound_ps
from fattree.experiment import Scenario
from fattree.failures import Timeline
from fattree.flows import Flows
from fattree.slow_links import slowest

# A choice, far beyond any run that ends: once the links and routes are there that a flow waits for,
# it needs a few bounds at most.
HORIZON_BOUNDS = 100


def given_up_ps(scenario: Scenario, flows: Flows, events: Timeline, gaps: NDArray[np.int64]) -> int:
    """Return HORIZON_BOUNDS times the least possible CCT of paced flows after the last change.

    The last change is one of links or routes, and the last flow's given start is added to it.
    Whoever must pass the slowest link has so much longer.
    """
    starts_ps = int(flows.start_ps.max(initial=0))
    share = Fraction(str(slowest(scenario)))
    longest_ps = ceil(HORIZON_BOUNDS * bound_ps(scenario, flows, gaps) / share)
    return events.last_change_ps + starts_ps + longest_ps
