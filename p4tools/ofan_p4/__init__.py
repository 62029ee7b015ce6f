"""The P4 tools: a compiler, a software switch, packet tests, a command line for a running switch.

Messages are made by protobuf's compiled back end (`p4messages`), which must be seen to before any
is imported.
"""

import p4messages

p4messages.install()
