"""The emulation: P4 compiler, software switch, virtual and Mininet networks.

The published `p4runtime` package carries message classes of an old generator, which only the pure Python back end of protobuf
takes; that choice must be made before protobuf is first imported.
"""

import os

os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
