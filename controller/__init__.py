"""The P4Runtime controller: what every switch should hold, what must change, and how it is sent.

Messages are made by protobuf's compiled back end (`p4messages`), which must be seen to before any
is imported.
"""

import p4messages

p4messages.install()
