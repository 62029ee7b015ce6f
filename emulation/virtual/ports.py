"""A directed link with its output queue, and what is counted there (simulator model, "Model").

The queue is the switch's own (`softswitch.queue`); the simulator's is a second one, `sim.queues`,
because its kernels know no objects. A test feeds both the same offers.
"""

from emulation.softswitch.queue import OutputQueue
from emulation.virtual.wires import Wire, Wires
from fattree.experiment import Scenario
from fattree.topology import LEVEL_OF, FatTree


class Port:
    """An output port of a switch: its queue, the link behind it, and its counts.

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
        "wire",
    )

    def __init__(self, scenario: Scenario, layer: str, far: int, far_port: int, wire: Wire) -> None:
        capacity = scenario.fabric.queue_bytes or None
        self.level = level = LEVEL_OF[layer]
        self.latency_ps = scenario.latencies_ps[level]
        rate_bps = scenario.rates_bps[level]
        self.queue = OutputQueue(rate_bps, capacity, gap_bytes=scenario.packets.gap_bytes)
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
        self.wire = wire

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
