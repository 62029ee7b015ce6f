"""The simulator: every load balancer and the paper's model at tens of millions of packet-hops per
second.

from sim import Scenario, run, sweep

result = run(Scenario(policy="ofan"))
print(result.increase, result.record)
"""

from fattree.experiment.model import Scenario
from sim.choice.choosing import choose
from sim.choice.questions import Question
from sim.errors import SimulationError, UnfinishedError
from sim.runs.engine import prepare, run
from sim.runs.results import Result
from sim.sweeps.run_frames import flow_frame, port_frame
from sim.sweeps.sweeping import sweep

__all__ = [
    "Question",
    "Result",
    "Scenario",
    "SimulationError",
    "UnfinishedError",
    "choose",
    "flow_frame",
    "port_frame",
    "prepare",
    "run",
    "sweep",
]
