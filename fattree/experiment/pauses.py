"""Priority flow control (IEEE 802.1Qbb): the room of buffers, and when they pause their links."""

from collections.abc import Iterable
from typing import NamedTuple

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.routes.slow_links import FULL, Pace, paces, slowest
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

# A port of a switch.
PortPlace = tuple[int, int]


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
    """A switch's guard against storms: a pause so long is one; the port then drops or sends."""

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
    """Return the switches' watchdog, whose patience is NEVER where they have none."""
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


def rooms(scenario: Scenario, switch: int, late_ps: int = 0) -> dict[int, Room]:
    """Return the rooms of a switch's links by port."""
    tree = scenario.tree
    slow = slow_ports(scenario)
    by_level = {level: room(scenario, level, late_ps) for level in Level}
    return {
        port: room(scenario, tree.level_of(switch, port), late_ps, slow[switch, port])
        if (switch, port) in slow
        else by_level[tree.level_of(switch, port)]
        for port in tree.ports(switch)
    }


def slow_ports(scenario: Scenario) -> dict[PortPlace, list[tuple[float, float]]]:
    """Return the ports whose links are ever slow, with the shares of rate that meet there.

    A pair is what the link carries at most of what comes in, while a packet or a control frame is
    sent back that began at the second share.
    """
    tree = scenario.tree
    of_links, of_hosts = paces(scenario)
    found = {}
    for link in {link for link, _ in of_links}:
        up, down = (of_links.get((link, is_up), ()) for is_up in (True, False))
        below, above = tree.link_ends(link)
        found[below.switch, below.port] = _meeting(comes=down, goes=up)
        found[above.switch, above.port] = _meeting(comes=up, goes=down)

    for host in {host for host, _ in of_hosts}:
        up, down = (of_hosts.get((host, is_up), ()) for is_up in (True, False))
        found[tree.access(host)] = _meeting(comes=up, goes=down)

    return found


def _meeting(comes: Iterable[Pace], goes: Iterable[Pace]) -> list[tuple[float, float]]:
    """Return the greatest share that comes from each change on, with that which goes there."""
    ways = [(Pace(0, FULL), *steps) for steps in (comes, goes)]
    times = sorted({pace.time_ps for steps in ways for pace in steps})
    rows = [
        [[pace.share for pace in steps if pace.time_ps <= time_ps][-1] for steps in ways]
        for time_ps in times
    ]
    return [
        (max(share for share, _ in rows[number:]), went) for number, (_, went) in enumerate(rows)
    ]


def room(
    scenario: Scenario,
    level: Level,
    late_ps: int = 0,
    shares: Iterable[tuple[float, float]] = (),
) -> Room:
    """Return the room for a link of a level; raises ExperimentError where it is too little.

    `late_ps` is how late pauses may be heeded, `shares` a slow link's (`slow_ports`).
    """
    most = scenario.fabric.queue_bytes
    told = scenario.fabric.headroom_bytes
    headroom = told
    if headroom is None:
        headroom = max(
            headroom_bytes(scenario, level, late_ps, comes=comes, goes=goes)
            for comes, goes in ((FULL, FULL), *shares)
        )

    above = most - headroom
    resume_at = above - RESUME_PACKETS * scenario.data_bytes
    if resume_at < 0:
        raise ExperimentError(
            f"fabric.queue_bytes = {most} has no room for a headroom of {headroom} bytes and"
            f" {RESUME_PACKETS} packets below it"
        )

    return Room(most, above, resume_at)


def headroom_bytes(
    scenario: Scenario,
    level: Level,
    late_ps: int = 0,
    comes: float = FULL,
    goes: float = FULL,
) -> int:
    """Return how many bytes may come in beyond the threshold, at the very most.

    The packet that crosses it and the one that begins just before the pause is there, both whole;
    and what a link carries while the pause waits for a packet on the way back and for an earlier
    control frame, is sent, travels, and while what was sent before it arrives travels, too. Real
    processes do all this late, by `late_ps` together. The link carries the share `comes` of its
    rate, and `goes` on the way back.
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


def refuse_unable_pauses(scenario: Scenario) -> None:
    """Raise ExperimentError for what does not go with pauses, on whichever network."""
    fabric = scenario.fabric
    if not is_paused(scenario):
        _refuse_settings_of_pauses(scenario)
        return

    if fabric.pause_watchdog is not None and fabric.pause_watchdog_us is None:
        raise ExperimentError(
            f'fabric.pause_watchdog = "{fabric.pause_watchdog}" needs fabric.pause_watchdog_us'
        )

    reasons = (
        (scenario.transport.trimming, "transport.trimming: no queue is full that could trim"),
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

    _refuse_slow_renewals(scenario)
    _refuse_storms_at_dead_links(scenario)
    for level in Level:
        room(scenario, level)

    for (switch, port), shares in slow_ports(scenario).items():
        room(scenario, scenario.tree.level_of(switch, port), shares=shares)


def _refuse_settings_of_pauses(scenario: Scenario) -> None:
    """Raise ExperimentError for settings that mean nothing where nothing is paused."""
    fabric = scenario.fabric
    told = {
        "fabric.headroom_bytes": fabric.headroom_bytes,
        "fabric.pause_watchdog_us": fabric.pause_watchdog_us,
        "fabric.pause_watchdog": fabric.pause_watchdog,
        "failures.storms": scenario.failures.storms or None,
    }
    for key, value in told.items():
        if value is not None:
            raise ExperimentError(f'{key} needs fabric.flow_control = "pfc"')


def _refuse_slow_renewals(scenario: Scenario) -> None:
    """Raise ExperimentError where a pause would end while its renewal waits for one packet."""
    share = slowest(scenario)
    size = longest_bytes(scenario) + scenario.packets.gap_bytes
    for level in Level:
        packet_ps = scenario.tx_ps(size, level, share)
        frame_ps = scenario.tx_ps(PAUSE_BYTES + scenario.packets.gap_bytes, level, share)
        lasts_ps, again_ps = lasting(scenario, level)
        if packet_ps + 2 * frame_ps > lasts_ps - again_ps:
            raise ExperimentError(
                f"failures.degraded: at {100 * share:g} % of its rate a packet of {size} bytes"
                f" holds a link for {packet_ps / PS_PER_US:.3f} us, and pauses, which last"
                f" {lasts_ps / PS_PER_US:.3f} us, are renewed when half of that is over:"
                " take a greater rate or shorter packets"
            )


def _refuse_storms_at_dead_links(scenario: Scenario) -> None:
    """Raise ExperimentError for storms that meet at a host, or that a dead link ends."""
    hosts = [storm.host for storm in scenario.failures.storms]
    storms(scenario)
    for host in hosts:
        if hosts.count(host) > 1:
            raise ExperimentError(f"failures.storms: {host} is named twice")

    for event in scenario.failures.events:
        if event.host in hosts:
            raise ExperimentError(
                f"failures.storms and failures.events both name {event.host}: no pause comes over"
                " a dead link"
            )
