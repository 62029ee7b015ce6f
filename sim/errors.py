"""What can go wrong in a simulation; command lines print the message, one line, and exit with 2.

SimulationError
    UnfinishedError   flows that do not finish: nothing is left to do, or the horizon has passed
    StoreError        a file that is no store of runs, or cannot be read or written
    SweepError        runs of a sweep that failed, or a scheduler that cannot be reached
"""


class SimulationError(Exception):
    """Anything that the simulator refuses or cannot finish."""


class UnfinishedError(SimulationError):
    """Flows that do not finish."""


class StoreError(SimulationError):
    """A file that is no store of runs, or cannot be read or written."""


class SweepError(SimulationError):
    """Runs of a sweep that failed, or a scheduler that cannot be reached."""
