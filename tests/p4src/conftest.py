"""The package that chooses protobuf's back end comes before the messages that tests import."""

import controller

assert controller
