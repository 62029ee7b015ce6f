"""What all tests share: the back end of their messages, and hypothesis: no deadlines, under CI the
same examples every time.

New random examples are for whoever works on the code. CI says whether a change breaks something, so
it must not turn red by a draw (`CI=true`, as all CI services set it).
"""

import os

from hypothesis import settings

import p4messages

# Tests import messages of their own, some before the packages that would see to this.
p4messages.install()

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

settings.register_profile(
    "ofan", deadline=None, derandomize=IN_CI, database=None if IN_CI else settings().database
)
settings.load_profile("ofan")
