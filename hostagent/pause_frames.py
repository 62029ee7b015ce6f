"""Pauses that a switch sends a host (IEEE 802.1Qbb), as Scapy reads them.

The switch writes them with code of its own, so that writer and reader check each other.
"""

from scapy.contrib.mac_control import MACControl, MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

MAC_CONTROL = bytes.fromhex("8808")
# The headers and the eight times behind them. Scapy takes shorter frames, too, and stumbles over
# a single byte more; later bytes are padding.
PAUSE_BYTES = 34


def is_control(frame: bytes) -> bool:
    """Return whether a frame is for a link's end itself."""
    return frame[12:14] == MAC_CONTROL


def quanta_of(frame: bytes) -> int | None:
    """Return for how many quanta a control frame pauses a host, 0 where it may go on.

    None is a frame that is malformed or lacks priority 0, which untagged packets have.
    """
    if len(frame) < PAUSE_BYTES:
        return None

    packet = Ether(frame[:PAUSE_BYTES])
    pause = packet.getlayer(MACControlClassBasedFlowControl)
    if pause is None or packet.dst != MACControl.DEFAULT_DST_MAC or not pause.c0_enabled:
        return None

    return int(pause.c0_pause_time)
