"""The run model, written as plainly as possible, without code of the models it is compared with.

One heap of events, packets and queues as objects, no arrays, no windows. It is written from the
rules of design.md, simulator-model.md and load-balancers.md, and imports only the `Scenario` from
our code: so a wrong rule in `fattree` or `hostagent` shows as a difference. The simulator and the
virtual network must agree with `run` to the picosecond.
"""

from tests.naive.failures import Refused
from tests.naive.network import Network, run
from tests.naive.port import Port
from tests.naive.wire import NEVER

__all__ = ["NEVER", "Network", "Port", "Refused", "run"]
