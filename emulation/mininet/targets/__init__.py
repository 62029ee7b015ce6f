"""The switches that a Mininet network can be made of, by the names that the user types.

    softswitch   ours
    bmv2         the reference switch, BMv2's simple_switch_grpc

All that differs between them is in their `Target`; nothing else asks which one it is.
"""

from emulation.mininet.targets.bmv2 import BMV2
from emulation.mininet.targets.softswitch import SOFTSWITCH
from emulation.mininet.targets.target import Target

TARGETS = {target.name: target for target in (SOFTSWITCH, BMV2)}

__all__ = ["BMV2", "SOFTSWITCH", "TARGETS", "Target"]
