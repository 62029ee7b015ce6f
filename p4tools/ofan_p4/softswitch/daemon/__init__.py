"""The switch as a process: sockets, queues in real time, gRPC, statistics.

gRPC's core writes lines of its own to standard error unless a variable forbids it before the
import; this package reports each failure in one line.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
