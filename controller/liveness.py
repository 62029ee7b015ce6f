"""Liveness of links in the dataplane: probes that the controller sends and catches.

A probe is a packet-out through one port; the switch at the other end punts it. Probes of both
directions of a link must arrive. A link is dead when the probes of `misses` intervals have not
arrived, so that after a failure `misses` to `misses` + 1 intervals pass, and the latency of a link.
It is alive again when probes of `misses` later intervals have arrived. Where probes of most links
stop at once, the fault is probably the controller's, and it waits PATIENCE times as long.

There is no I/O and no clock: the driver calls `tick` at `next_tick_ps`, sends the probes that it
returns, and passes arriving probes to it.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from controller.fabric_controller import LinkChange
from controller.plan import PROBE_ETHERTYPE
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.routes.damping import damping
from fattree.shape.addressing import switch_mac
from fattree.shape.topology import FatTree, Level, LinkEnd
from fattree.units import PS_PER_SECOND, PS_PER_US

# The group address that no bridge forwards.
NEAREST_BRIDGE = 0x0180C200000E
# "OFAN", then the switch and the port that the probe left.
PAYLOAD = struct.Struct("!4sIH")
MAGIC = b"OFAN"
# The least Ethernet frame, without its FCS.
LEAST_FRAME = 60
DEFAULT_MISSES = 3
PATIENCE = 3
# Beside traffic, for all software switches of one machine together (`refuse_too_many_probes`).
MOST_PROBES_PER_SECOND = 5_000


class Probe(NamedTuple):
    """A frame to be sent through a port of a switch."""

    switch: int
    port: int
    frame: bytes


@dataclass(slots=True)
class Direction:
    """One direction of a link: the time since its last probe, and the probes that arrived since."""

    link: int
    probe: Probe
    waiting_since_ps: int | None = None
    is_heard: bool = False
    streak: int = 0


class Liveness:
    """Follows all inter-switch links, which count as alive at first, unless they are in `down`."""

    def __init__(
        self,
        tree: FatTree,
        interval_ps: int,
        misses: int,
        now_ps: int = 0,
        down: Iterable[int] = (),
    ) -> None:
        self.interval_ps = interval_ps
        self.misses = misses
        self.next_tick_ps = now_ps
        self.sent = self.heard = 0
        self._down = frozenset(down)
        self._tree = tree
        self._directions = {
            end: Direction(link, _probe(tree, *end))
            for link in range(tree.links)
            for end in tree.link_ends(link)
        }

    def tick(self, now_ps: int) -> tuple[list[Probe], LinkChange]:
        """Return the probes to send now, and the links that have turned out to be dead or alive.

        A late tick judges no link: then the controller itself was stopped.
        """
        # The next tick counts from now then: those that were missed are not made up for.
        is_late = now_ps >= self.next_tick_ps + self.interval_ps
        self.next_tick_ps = (now_ps if is_late else self.next_tick_ps) + self.interval_ps
        change = LinkChange() if is_late else self._judge(now_ps)

        # Silence begins with the first probe after the last probe that was heard.
        for direction in self._directions.values():
            if is_late or direction.waiting_since_ps is None:
                direction.waiting_since_ps = now_ps

        self.sent += len(self._directions)
        return [direction.probe for direction in self._directions.values()], change

    def on_probe(self, switch: int, port: int, frame: bytes) -> bool:
        """Take in a frame that a switch has punted.

        Return whether it is a probe of ours, from the port that is wired there.
        """
        # A probe at a port that its link does not lead to is no evidence about the link.
        source = _source(frame)
        direction = self._directions.get(source) if source else None
        if source is None or direction is None or self._tree.neighbour(*source) != (switch, port):
            return False

        direction.waiting_since_ps = None
        direction.is_heard = True
        self.heard += 1

        return True

    def _judge(self, now_ps: int) -> LinkChange:
        # More than half of the living links at once is rather a controller that was cut off, or a
        # machine that stood still, than so many failures: then only a longer silence counts.
        silent = self._silent(now_ps, self.misses)
        alive = self._tree.links - len(self._down)
        dead = (
            silent
            if 2 * len(silent - self._down) <= alive
            else self._silent(now_ps, PATIENCE * self.misses)
        )

        # Back is a link of which both directions were heard in `misses` intervals since.
        unsure = set()
        for direction in self._directions.values():
            direction.streak = (
                0 if direction.link in silent else direction.streak + direction.is_heard
            )
            direction.is_heard = False
            if direction.streak < self.misses:
                unsure.add(direction.link)

        change = LinkChange(dead - self._down, self._down - silent - unsure)
        self._down = self._down - change.up | change.down
        return change

    def _silent(self, now_ps: int, intervals: int) -> frozenset[int]:
        """Return the links on which a direction's probes have not arrived for so long."""
        since_ps = now_ps - intervals * self.interval_ps
        directions = self._directions.values()
        return frozenset(
            d.link
            for d in directions
            if d.waiting_since_ps is not None and d.waiting_since_ps <= since_ps
        )


def _probe(tree: FatTree, switch: int, port: int) -> Probe:
    header = (
        NEAREST_BRIDGE.to_bytes(6, "big")
        + switch_mac(tree, switch).to_bytes(6, "big")
        + PROBE_ETHERTYPE.to_bytes(2, "big")
    )

    return Probe(
        switch, port, (header + PAYLOAD.pack(MAGIC, switch, port)).ljust(LEAST_FRAME, b"\0")
    )


def _source(frame: bytes) -> LinkEnd | None:
    """Return the switch and port from which a probe was sent; None for other frames."""
    if int.from_bytes(frame[12:14], "big") != PROBE_ETHERTYPE or len(frame) < 14 + PAYLOAD.size:
        return None

    magic, switch, port = PAYLOAD.unpack_from(frame, 14)
    return LinkEnd(switch, port) if magic == MAGIC else None


def liveness(scenario: Scenario, now_ps: int = 0, down: Iterable[int] = ()) -> Liveness | None:
    """Return the liveness of a scenario's links, None where its controller does not probe.

    By default every zero-load RTT.

    Raises ExperimentError where no link could ever pass.
    """
    settings = scenario.controller
    if settings.detection != "probe":
        return None

    asked_us = settings.probe_interval_us
    interval_ps = scenario.zero_load_rtt_ps if asked_us is None else round(asked_us * PS_PER_US)
    misses = settings.probe_misses or DEFAULT_MISSES

    # A probe is heard a latency and its own length after it was sent, and must be before it counts.
    flight_ps = max(
        scenario.latencies_ps[level] + scenario.tx_ps(LEAST_FRAME, level) for level in Level
    )

    if misses * interval_ps <= flight_ps:
        raise ExperimentError(
            "controller.probe_interval_us x probe_misses = "
            f"{misses * interval_ps / PS_PER_US:g} µs: "
            f"a probe is on its way for {flight_ps / PS_PER_US:g} µs, so every link would seem dead"
        )

    return Liveness(scenario.tree, interval_ps, misses, now_ps=now_ps, down=down)


def follows_ps(scenario: Scenario) -> int:
    """Return how long after a link's last change the controller may still act on it, without G.

    It may have to find the change, and to wait for a link that has flapped.
    """
    probing = liveness(scenario)
    # Misses, at most PATIENCE times as many, and a tick on either side.
    found_ps = probing.interval_ps * (PATIENCE * probing.misses + 2) if probing else 0
    flaps = damping(scenario.controller)
    return found_ps + (flaps.longest_ps if flaps else 0)


def probes_per_second(scenario: Scenario, probing: Liveness) -> float:
    """Return how many probes the whole fabric sends."""
    return 2 * scenario.tree.links * PS_PER_SECOND / probing.interval_ps
