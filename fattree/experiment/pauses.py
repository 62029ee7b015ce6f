"""Priority flow control (IEEE 802.1Qbb): the room of buffers, and when they pause their links."""

from typing import NamedTuple

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.shape.topology import Level
from fattree.units import PS_PER_SECOND

# A MAC control frame, FCS included: an Ethernet frame of the least length.
PAUSE_BYTES = 64
# A link goes on when so many packets have left the buffer since it was last at its threshold.
RESUME_PACKETS = 2


class Room(NamedTuple):
    """The buffer of packets that come in by one link, in bytes.

    It holds `most`, pauses the link when it has more than `pause_above`, and lets it go on when it
    has `resume_at` or less.
    """

    most: int
    pause_above: int
    resume_at: int


def is_paused(scenario: Scenario) -> bool:
    """Return whether switches pause links."""
    return scenario.fabric.flow_control == "pfc"


def room(scenario: Scenario, level: Level, late_ps: int = 0) -> Room:
    """Return the room for a link of a level; raises ExperimentError where it is too little.

    `late_ps` is how late pauses may be heeded.
    """
    most = scenario.fabric.queue_bytes
    told = scenario.fabric.headroom_bytes
    headroom = headroom_bytes(scenario, level, late_ps) if told is None else told
    above = most - headroom
    resume_at = above - RESUME_PACKETS * scenario.data_bytes
    if resume_at < 0:
        raise ExperimentError(
            f"fabric.queue_bytes = {most} has no room for a headroom of {headroom} bytes and"
            f" {RESUME_PACKETS} packets below it"
        )

    return Room(most, above, resume_at)


def headroom_bytes(scenario: Scenario, level: Level, late_ps: int = 0) -> int:
    """Return how many bytes may come in beyond the threshold, at the very most.

    The packet that crosses it and the one that begins just before the pause is there, both whole;
    and what a link carries while the pause waits for a packet on the way back and for an earlier
    control frame, is sent, travels, and while what was sent before it arrives travels, too. Real
    processes do all this late, by `late_ps` together.
    """
    gap = scenario.packets.gap_bytes
    time_ps = (
        scenario.tx_ps(scenario.data_bytes + gap, level)
        + 2 * scenario.tx_ps(PAUSE_BYTES + gap, level)
        + 2 * scenario.latencies_ps[level]
        + late_ps
    )
    carried = -(-time_ps * scenario.link_bps(level) // (8 * PS_PER_SECOND))
    return carried + 2 * scenario.data_bytes


def refuse_unable_pauses(scenario: Scenario) -> None:
    """Raise ExperimentError for what does not go with pauses, on whichever network."""
    fabric = scenario.fabric
    if not is_paused(scenario):
        if fabric.headroom_bytes is not None:
            raise ExperimentError('fabric.headroom_bytes needs fabric.flow_control = "pfc"')

        return

    failures = scenario.failures
    broken = failures.rate or failures.events or failures.losses or failures.degraded
    reasons = (
        (scenario.transport.trimming, "transport.trimming: no queue is full that could trim"),
        (broken, "[failures]: a pause that is lost holds its link for ever"),
        (fabric.planes, "fabric.planes: only links of one plane are paused"),
        (
            scenario.controller.detection != "announced",
            "controller.detection: probes would be paused and taken for lost",
        ),
        (not fabric.queue_bytes, "fabric.queue_bytes = 0: without a limit nothing is paused"),
    )
    for is_so, reason in reasons:
        if is_so:
            raise ExperimentError(f'fabric.flow_control = "pfc" does not go with {reason}')

    for level in Level:
        room(scenario, level)
