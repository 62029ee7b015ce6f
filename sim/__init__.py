"""The simulator: every load balancer and the paper's model at tens of millions of packet-hops per
second.

from sim import Scenario, run, sweep

result = run(Scenario(policy="ofan"))
print(result.increase, result.record)

Each name is imported when it is first used: a command needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

MODULES = {
    "Question": "sim.choice.questions",
    "Result": "sim.runs.results",
    "Scenario": "fattree.experiment.model",
    "SimulationError": "sim.errors",
    "UnfinishedError": "sim.errors",
    "choose": "sim.choice.choosing",
    "flow_frame": "sim.sweeps.run_frames",
    "port_frame": "sim.sweeps.run_frames",
    "prepare": "sim.runs.engine",
    "run": "sim.runs.engine",
    "sweep": "sim.sweeps.sweeping",
}


# Type checkers read the imports above, and tell mistyped names.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name."""
        if name not in MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        value = getattr(import_module(MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
