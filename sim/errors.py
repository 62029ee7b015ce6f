"""Errors of simulations; command lines print the message, one line, and exit with 2,
or with 1 where a run has failed.

SimulationError
    UnfinishedError   flows that do not finish: nothing is left to do, or the horizon has passed
    StoreError        a file that is no store of runs, or cannot be read or written
    SweepError        a scheduler that cannot be reached, or workers of another version
        FailedRunsError   runs that failed
"""


class SimulationError(Exception):
    """Anything that the simulator refuses or cannot finish."""


class UnfinishedError(SimulationError):
    """Flows that do not finish."""


class StoreError(SimulationError):
    """A file that is no store of runs, or cannot be read or written."""


class SweepError(SimulationError):
    """A scheduler that cannot be reached, or workers of another version."""


class FailedRunsError(SweepError):
    """Runs that failed."""
