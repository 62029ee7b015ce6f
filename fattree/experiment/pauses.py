"""Priority flow control (IEEE 802.1Qbb): the room of buffers, and when they pause their links."""

from collections.abc import Iterable
from typing import NamedTuple

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.shape.addressing import host_named
from fattree.shape.topology import Level
from fattree.units import PS_PER_NS, PS_PER_SECOND, PS_PER_US

# A MAC control frame, FCS included: an Ethernet frame of the least length.
PAUSE_BYTES = 64
# A link goes on when so many packets have left the buffer since it was last at its threshold.
RESUME_PACKETS = 2
# A pause lasts for 65,535 quanta of 512 bit times of its link, and is renewed after half of them.
MOST_QUANTA = 0xFFFF
QUANTUM_BITS = 512
NEVER = 2**62
# The share of its rate that a link carries where it is not slow.
FULL = 1.0


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


class Lasting(NamedTuple):
    """The times of a level's pauses: how long one lasts, and after how long it is renewed."""

    lasts_ps: int
    again_ps: int


class Watchdog(NamedTuple):
    """A switch's guard against storms: after a pause of `patience_ps` the port drops or sends."""

    patience_ps: int
    drops: bool


class HostStorm(NamedTuple):
    """The time in which a host pauses its link, until NEVER where it does not end."""

    host: int
    from_ps: int
    until_ps: int


def lasting(scenario: Scenario, level: Level) -> Lasting:
    """Return how long pauses of a level's links last, by their full rate."""
    bit_ps = QUANTUM_BITS * PS_PER_SECOND
    rate_bps = scenario.rates_bps[level]
    return Lasting(MOST_QUANTA * bit_ps // rate_bps, MOST_QUANTA // 2 * bit_ps // rate_bps)


def watchdog(scenario: Scenario) -> Watchdog:
    """Return the switches' watchdog, with patience NEVER where they have none."""
    patience_us = scenario.fabric.pause_watchdog_us
    return Watchdog(
        NEVER if patience_us is None else round(patience_us * PS_PER_US),
        drops=scenario.fabric.pause_watchdog != "ignore",
    )


def storms(scenario: Scenario) -> tuple[HostStorm, ...]:
    """Return the hosts that pause their links without an end; raises AddressError."""
    return tuple(
        HostStorm(
            host_named(scenario.tree, storm.host),
            round(storm.at_ns * PS_PER_NS),
            NEVER if storm.until_ns is None else round(storm.until_ns * PS_PER_NS),
        )
        for storm in scenario.failures.storms
    )


def room(
    scenario: Scenario,
    level: Level,
    late_ps: int = 0,
    shares: Iterable[tuple[float, float]] = (),
) -> Room:
    """Return the room for a link of a level; raises ExperimentError where it is too little.

    `late_ps` is how late pauses may be heeded, `shares` a slow link's (`slow_ports`).
    """
    capacity = scenario.fabric.queue_bytes
    told = scenario.fabric.headroom_bytes
    headroom = told
    if headroom is None:
        headroom = max(
            headroom_bytes(scenario, level, late_ps, comes=comes, goes=goes)
            for comes, goes in ((FULL, FULL), *shares)
        )

    above = capacity - headroom
    resume_at = above - RESUME_PACKETS * scenario.data_bytes
    if resume_at < 0:
        raise ExperimentError(
            f"fabric.queue_bytes = {capacity} has no room for a headroom of {headroom} bytes and"
            f" {RESUME_PACKETS} packets below it"
        )

    return Room(capacity, above, resume_at)


def headroom_bytes(
    scenario: Scenario,
    level: Level,
    late_ps: int = 0,
    comes: float = FULL,
    goes: float = FULL,
) -> int:
    """Return how many bytes may come in beyond the threshold, at the very most.

    The packet that crosses it and the packet that begins just before the pause is there, both
    whole; and the bytes that a link carries while the pause waits for a packet on the way back and
    for an earlier control frame, is sent, travels, and while bytes sent before its arrival travel,
    too. Real processes do all this late, by `late_ps` together. The link carries the share `comes`
    of its rate, and `goes` on the way back.
    """
    gap = scenario.packets.gap_bytes
    time_ps = (
        scenario.tx_ps(longest_bytes(scenario) + gap, level, goes)
        + 2 * scenario.tx_ps(PAUSE_BYTES + gap, level, goes)
        + 2 * scenario.latencies_ps[level]
        + late_ps
    )
    carried = -(-time_ps * scenario.link_bps(level, comes) // (8 * PS_PER_SECOND))
    return carried + 2 * longest_bytes(scenario)


def longest_bytes(scenario: Scenario) -> int:
    """Return the size of the longest packet on a link: data, an ACK or a control frame."""
    return max(scenario.data_bytes, scenario.ack_bytes, PAUSE_BYTES)
