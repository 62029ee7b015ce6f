"""Probes of links in the dataplane: packet-outs that the switch at the other end punts.

The rule by which links count as dead or alive is `fattree.routes.link_liveness`'s. There is no I/O
and no clock: the driver calls `tick` at `next_tick_ps`, sends the probes that it returns, and
passes arriving probes to it.
"""

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from controller.fabric_controller import LinkChange
from controller.plan import PROBE_ETHERTYPE
from fattree.experiment.model import Scenario
from fattree.routes.link_liveness import LEAST_FRAME, LinkLiveness, probe_times
from fattree.shape.addressing import switch_mac
from fattree.shape.topology import FatTree, LinkEnd
from fattree.units import PS_PER_SECOND

# The group address that no bridge forwards.
NEAREST_BRIDGE = 0x0180C200000E
# "OFAN", then the switch and the port that the probe left.
PAYLOAD = struct.Struct("!4sIH")
MAGIC = b"OFAN"
# Beside traffic, for all software switches of one machine together (`refuse_too_many_probes`).
MOST_PROBES_PER_SECOND = 5_000


class Probe(NamedTuple):
    """A frame to be sent through a port of a switch."""

    switch: int
    port: int
    frame: bytes


class Liveness(LinkLiveness):
    """Follows all inter-switch links, which count as alive at first, unless they are in `down`."""

    @cached_property
    def _probes(self) -> list[Probe]:
        return [_probe(self._tree, *end) for end in self.ends]

    def tick(self, now_ps: int) -> tuple[list[Probe], LinkChange]:
        """Return the probes to send now, and the links that have turned out to be dead or alive."""
        return self._probes, LinkChange(*self.judge(now_ps))

    def on_probe(self, switch: int, port: int, frame: bytes) -> bool:
        """Take in a frame that a switch has punted.

        Return whether it is a probe of ours, from the port that is wired there.
        """
        source = _source(frame)
        return source is not None and self.hear(source, LinkEnd(switch, port))


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

    Raises ExperimentError where no link could ever pass.
    """
    if scenario.controller.detection != "probe":
        return None

    interval_ps, misses = probe_times(scenario)
    return Liveness(scenario.tree, interval_ps, misses, now_ps=now_ps, down=down)


def probes_per_second(scenario: Scenario, probing: Liveness) -> float:
    """Return how many probes the whole fabric sends."""
    return 2 * scenario.tree.links * PS_PER_SECOND / probing.interval_ps
