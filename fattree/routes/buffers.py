"""Buffers of switches that pause links or share memory, beside slow links.

A link that is slow on the way back has its pauses heeded later, and needs more headroom.
"""

from collections.abc import Iterable

from fattree.errors import ExperimentError
from fattree.experiment.base import MOST_BYTES
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import (
    PAUSE_BYTES,
    Room,
    is_paused,
    lasting,
    longest_bytes,
    room,
    storms,
)
from fattree.experiment.sharing import alpha, is_shared
from fattree.routes.slow_links import FULL, Pace, paces, slowest
from fattree.shape.topology import Level
from fattree.units import ALPHA_BITS, PS_PER_US

# A port of a switch.
PortPlace = tuple[int, int]


def rooms(
    scenario: Scenario, switch: int, late_ps: int = 0, more_bytes: int = 0
) -> dict[int, Room]:
    """Return the rooms of a switch's links by port.

    Packets have `more_bytes` between switches, a header of the program's (`longer`).
    """
    tree = scenario.tree
    slow = slow_ports(scenario)
    carried = {level: longer(scenario, level, more_bytes) for level in Level}
    by_level = {level: room(carried[level], level, late_ps) for level in Level}
    levels = {port: tree.level_of(switch, port) for port in tree.ports(switch)}
    return {
        port: room(carried[level], level, late_ps, slow[switch, port])
        if (switch, port) in slow
        else by_level[level]
        for port, level in levels.items()
    }


def longer(scenario: Scenario, level: Level, more_bytes: int) -> Scenario:
    """Return a scenario with the packets that links of a level carry.

    All packets have `more_bytes` between switches, and hosts' links carry them without.
    """
    if level == Level.HOST or not more_bytes:
        return scenario

    sizes = scenario.packets
    more = {name: getattr(sizes, name) + more_bytes for name in ("header_bytes", "ack_bytes")}
    return scenario.model_copy(update={"packets": sizes.model_copy(update=more)})


def slow_ports(scenario: Scenario) -> dict[PortPlace, list[tuple[float, float]]]:
    """Return the ports with links that are ever slow, with the shares of rate that meet there.

    The first share of a pair bounds the rate at which bytes come in while a packet or a control
    frame is sent back; the second is the share at which that frame began.
    """
    tree = scenario.tree
    of_links, of_hosts = paces(scenario)
    ports = {}
    for link in {link for link, _ in of_links}:
        up, down = (of_links.get((link, is_up), ()) for is_up in (True, False))
        below, above = tree.link_ends(link)
        ports[below.switch, below.port] = _meeting(comes=down, goes=up)
        ports[above.switch, above.port] = _meeting(comes=up, goes=down)

    for host in {host for host, _ in of_hosts}:
        up, down = (of_hosts.get((host, is_up), ()) for is_up in (True, False))
        ports[tree.access(host)] = _meeting(comes=up, goes=down)

    return ports


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


def refuse_unable_pauses(scenario: Scenario) -> None:
    """Raise ExperimentError for keys that do not go with pauses, on all networks."""
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
    refuse_small_rooms(scenario)


def refuse_small_rooms(scenario: Scenario, more_bytes: int = 0) -> None:
    """Raise ExperimentError where a buffer has no room for its headroom and packets below it.

    Packets have `more_bytes` between switches.
    """
    for level in Level:
        room(longer(scenario, level, more_bytes), level)

    for (switch, port), shares in slow_ports(scenario).items():
        level = scenario.tree.level_of(switch, port)
        room(longer(scenario, level, more_bytes), level, shares=shares)


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


def memory_bytes(scenario: Scenario, switch: int, more_bytes: int = 0) -> int:
    """Return how much memory a switch's ports share: all, but headroom where links are paused.

    Packets have `more_bytes` between switches.
    """
    tree = scenario.tree
    if not is_paused(scenario):
        return scenario.fabric.queue_bytes * len(tree.ports(switch))

    buffers = rooms(scenario, switch, more_bytes=more_bytes)
    return sum(buffer.pause_above for buffer in buffers.values())


def refuse_unable_sharing(scenario: Scenario) -> None:
    """Raise ExperimentError for keys that do not go with shared memory, on all networks."""
    fabric = scenario.fabric
    if not is_shared(scenario):
        if fabric.buffer_alpha is not None:
            raise ExperimentError('fabric.buffer_alpha needs fabric.buffer = "shared"')

        return

    if not fabric.queue_bytes:
        raise ExperimentError(
            'fabric.buffer = "shared" does not go with fabric.queue_bytes = 0: without a limit'
            " nothing is shared"
        )

    # One switch of each tier, and those of slow links: the others have the same ports.
    tree = scenario.tree
    firsts = {0, tree.first_agg} | ({tree.first_core} if tree.cores else set())
    slow = {switch for switch, _ in slow_ports(scenario)} if is_paused(scenario) else set()
    for switch in sorted(firsts | slow):
        memory = memory_bytes(scenario, switch)
        if memory > MOST_BYTES:
            raise ExperimentError(f"fabric.queue_bytes: {memory} bytes of a switch are too many")

        largest = alpha(scenario) * memory >> ALPHA_BITS
        if largest < max(scenario.data_bytes, scenario.ack_bytes):
            raise ExperimentError(
                f"fabric.buffer_alpha: {largest} bytes of a memory of {memory} have no room for a"
                f" packet, which has {max(scenario.data_bytes, scenario.ack_bytes)} bytes"
            )
