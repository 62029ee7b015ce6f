"""Tests here import protobuf messages of their own: the package that chooses protobuf's back end
must come first.
"""

import controller

assert controller
