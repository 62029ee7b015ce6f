"""The P4Runtime controller: plans of all switches, the updates between two plans, and sessions.

Messages are made by protobuf's compiled back end (`p4messages`), which must be seen to before any
is imported.
"""

import p4messages

p4messages.install()
