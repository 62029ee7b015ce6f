"""The failure that all fuzzers raise, and the switch's port to its controller."""

CPU_PORT = 510


class FuzzFailure(Exception):
    """The switch failed; the message says how to make it fail again."""
