"""A directed link with its output queue, and what is counted there (simulator model, "Model").

The queue is the switch's own (`softswitch.queue`); the simulator's is a second one,
`sim.kernels.queues`, because its kernels know no objects. A test feeds both the same offers.
"""

from emulation.softswitch.queue import OutputQueue
from emulation.virtual.lanes import LaneQueue, Passage
from emulation.virtual.wires import Wire, Wires
from fattree.experiment import Scenario
from fattree.topology import LEVEL_OF, FatTree


class Port:
    """An output port of a switch: its queue, the link behind it, and its counts.

    Where switches trim, data that find the queue full are cut to `trim_to` bytes (0: dropped), and
    hurried on as NACKs are.

    The link, `wire`, leads to input port `far_port` of node `far`; a packet whose transmission
    starts within an outage is lost, while the queue drains as if nothing had happened (design,
    decision 8).
    """

    __slots__ = (
        "bytes",
        "far",
        "far_port",
        "latency_ps",
        "layer",
        "level",
        "lost",
        "marks",
        "max_queue_bytes",
        "packets",
        "queue",
        "queue_byte_ps",
        "trim_to",
        "trims",
        "wire",
    )

    def __init__(self, scenario: Scenario, layer: str, far: int, far_port: int, wire: Wire) -> None:
        capacity = scenario.fabric.queue_bytes
        gap = scenario.packets.gap_bytes
        self.level = level = LEVEL_OF[layer]
        self.latency_ps = scenario.latencies_ps[level]
        rate_bps = scenario.rates_bps[level]
        self.trim_to = scenario.ack_bytes if scenario.transport.trimming else 0
        self.queue: OutputQueue | LaneQueue
        if self.trim_to:
            self.queue = LaneQueue(rate_bps, capacity, gap)
        else:
            self.queue = OutputQueue(rate_bps, capacity or None, gap_bytes=gap)
            self.queue.foresee_rates(
                (pace.time_ps, scenario.link_bps(level, pace.share)) for pace in wire.paces
            )

        self.layer = layer
        self.far = far
        self.far_port = far_port
        self.max_queue_bytes = 0
        self.queue_byte_ps = 0
        self.bytes = 0
        self.packets = 0
        self.marks = 0
        self.lost = 0
        self.trims = 0
        self.wire = wire

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Passage | None:
        """Enqueue a packet; return its way through the port, None where it is dropped.

        An urgent one has the size that packets are cut to.
        """
        passage = None if is_urgent else self._queued(now_ps, size)
        if passage is None:
            return self._hurried(now_ps, size, is_urgent)

        # A queue is longest just after an arrival, so no other moment need be looked at.
        self.max_queue_bytes = max(self.max_queue_bytes, self.queue.occupancy_bytes(now_ps))
        self.queue_byte_ps += size * (passage.departure_ps - now_ps)
        self.bytes += size
        self.packets += 1
        return passage

    def _queued(self, now_ps: int, size: int) -> Passage | None:
        if isinstance(self.queue, LaneQueue):
            return self.queue.offer(now_ps, size)

        departure_ps = self.queue.offer(now_ps, size)
        if departure_ps is None:
            return None

        return Passage(size, self.queue.last_start_ps, departure_ps)

    def _hurried(self, now_ps: int, size: int, is_urgent: bool) -> Passage | None:
        """Let NACKs and what has found no room overtake all that waits, cut to `trim_to` bytes.

        An ACK that has found none cannot be cut: it is dropped.
        """
        if not isinstance(self.queue, LaneQueue):
            return None

        hurried = (
            self.queue.hurry(now_ps, self.trim_to) if is_urgent or size > self.trim_to else None
        )
        if hurried is None:
            self.queue.drops += 1
            return None

        passage, longer = hurried
        self.trims += not is_urgent
        self.queue_byte_ps += longer
        self.bytes += self.trim_to
        self.packets += 1
        return passage


def ports_of(scenario: Scenario, switch: int, wires: Wires) -> dict[int, Port]:
    """Return the ports of a switch by their numbers."""
    tree = scenario.tree
    return {
        number: _port(scenario, tree, switch, number=number, wire=wires.behind(switch, number))
        for number in tree.ports(switch)
    }


def _port(scenario: Scenario, tree: FatTree, switch: int, number: int, wire: Wire) -> Port:
    layer = tree.layer_of(switch, number)
    far = tree.neighbour(switch, number)
    if far is None:
        host = tree.switches + tree.host_at(switch, number)
        return Port(scenario, layer, far=host, far_port=0, wire=wire)

    return Port(scenario, layer, far=far.switch, far_port=far.port, wire=wire)
