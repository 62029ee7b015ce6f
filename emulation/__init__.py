"""The emulation: P4 compiler, software switch, virtual and Mininet networks.

Messages are made by protobuf's compiled back end (`p4messages`), which must be seen to before any
is imported.
"""

import p4messages

p4messages.install()
