"""The switch as a process: sockets, queues in real time, gRPC, statistics.

gRPC's core writes lines of its own to standard error unless it is told not to before it is
imported; what fails is said in one line by this package.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
