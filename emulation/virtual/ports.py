"""A directed link with its output queue, and what is counted there (simulator model, "Model").

The queue is the switch's own (`softswitch.queue`); the simulator's is a second one, `sim.queues`,
because its kernels know no objects. A test feeds both the same offers.
"""

from bisect import bisect_right
from collections.abc import Iterable

from emulation.softswitch.queue import OutputQueue
from fattree.experiment import Scenario
from fattree.topology import FatTree

Outage = tuple[int, int]
# The end of an outage that has none: later than all times, and one more still fits into 64 bits.
ALWAYS = 2**62


class Port:
    """An output port of a switch: its queue, the link behind it, and its counts.

    The link leads to input port `far_port` of node `far`; a packet whose transmission starts within
    an outage is lost, while the queue drains as if nothing had happened (design, decision 8).
    """

    __slots__ = (
        "_outages",
        "bytes",
        "far",
        "far_port",
        "layer",
        "lost",
        "marks",
        "max_queue_bytes",
        "packets",
        "queue",
        "queue_byte_ps",
    )

    def __init__(
        self, scenario: Scenario, layer: str, far: int, far_port: int, outages: Iterable[Outage]
    ) -> None:
        capacity = scenario.fabric.queue_bytes or None
        self.queue = OutputQueue(scenario.rate_bps, capacity, gap_bytes=scenario.packets.gap_bytes)
        self.layer = layer
        self.far = far
        self.far_port = far_port
        self.max_queue_bytes = 0
        self.queue_byte_ps = 0
        self.bytes = 0
        self.packets = 0
        self.marks = 0
        self.lost = 0
        self._outages = sorted(outages)

    def offer(self, now_ps: int, size: int) -> int | None:
        """Enqueue a packet; return when its last bit will have left, None where it is dropped."""
        departure = self.queue.offer(now_ps, size)
        if departure is not None:
            # A queue is longest just after an arrival, so no other moment need be looked at.
            self.max_queue_bytes = max(self.max_queue_bytes, self.queue.occupancy_bytes(now_ps))
            self.queue_byte_ps += size * (departure - now_ps)
            self.bytes += size
            self.packets += 1

        return departure

    def set_link(self, now_ps: int, up: bool) -> None:
        """Break the link from now on, or mend it, whatever was foreseen.

        Nothing changes where it is in that state.
        """
        if up is not self.is_down(now_ps):
            return

        # What has been foreseen from now on is void; an outage that has begun ends now, if it ends.
        past = [
            (down_ps, min(up_ps, now_ps)) for down_ps, up_ps in self._outages if down_ps < now_ps
        ]
        self._outages = past if up else [*past, (now_ps, ALWAYS)]

    def is_down(self, start_ps: int) -> bool:
        """Return whether a packet whose transmission starts now is lost."""
        # The last outage that began at or before the start: at the very instant of a failure a
        # packet is lost, at that of a repair it is not.
        index = bisect_right(self._outages, (start_ps, ALWAYS + 1))
        return index > 0 and start_ps < self._outages[index - 1][1]


def ports_of(scenario: Scenario, switch: int, outages: dict[int, list[Outage]]) -> dict[int, Port]:
    """Return the ports of a switch by their numbers; `outages` are by link."""
    tree = scenario.tree
    return {
        number: _port(scenario, tree, switch, number=number, outages=outages)
        for number in tree.ports(switch)
    }


def _port(
    scenario: Scenario, tree: FatTree, switch: int, number: int, outages: dict[int, list[Outage]]
) -> Port:
    layer = tree.layer_of(switch, number)
    far = tree.neighbour(switch, number)
    link = tree.link_at(switch, number)
    if far is None or link is None:
        return Port(
            scenario,
            layer,
            far=tree.switches + tree.host_at(switch, number),
            far_port=0,
            outages=(),
        )

    return Port(
        scenario,
        layer,
        far=far.switch,
        far_port=far.port,
        outages=outages.get(link, ()),
    )
