"""The errors of an emulation; command lines print the message, one line, and exit with 2,
or with 1 where a run has failed.

EmulationError
    UnsupportedError   an experiment asks for what this network cannot do
    ProgramError       a P4 program that lacks what the controller or the packets need
    NetworkError       this machine cannot give us the network
    BusyError          another emulation runs here
    FailedRunError     a run that began and did not end as it should
        StartError     a process of the network did not start or ended early, and its last words
"""


class EmulationError(Exception):
    """A run that cannot go on."""


class UnsupportedError(EmulationError):
    """The experiment asks for something that this network does not offer."""


class ProgramError(EmulationError):
    """A P4 program that lacks a part that the controller or the packets need."""


class NetworkError(EmulationError):
    """This machine cannot give us the network."""


class BusyError(EmulationError):
    """Another emulation runs here."""


class FailedRunError(EmulationError):
    """A run that began and did not end as it should."""


class StartError(FailedRunError):
    """A process of the network did not start or ended early."""
