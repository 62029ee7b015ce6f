"""The P4Runtime controller: what every switch should hold, what must change, and how it is sent.

The published `p4runtime` package carries message classes of an old generator, which protobuf's compiled back end refuses;
its pure Python back end takes them. That choice must be made before protobuf is first imported.
"""

import os

os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
