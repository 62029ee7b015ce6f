"""A directed link with its output queue and its counters (simulator model, "Model").

The queue, lane included, is the switch's (`softswitch.ports.queue`). The simulator has another,
`sim.kernels.ports`, as kernels have no objects. A test gives both the same packets.
"""

from fattree.counters import PORT_COUNTERS
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.experiment.sharing import alpha, is_shared
from fattree.routes.buffers import memory_bytes
from fattree.shape.topology import LEVEL_OF, FatTree, Level
from ofan_p4.softswitch.ports.pausable import PausableQueue
from ofan_p4.softswitch.ports.queue import OutputQueue, Passage
from tests.python_network.shared import SharedMemory, SharedQueue
from tests.python_network.wires import Wire, Wires


class Port:
    """An output port of a switch: its queue, the link behind it, and its counts.

    The link, `wire`, leads to input port `far_port` of node `far`; a packet that starts
    within an outage is lost, while the queue drains as if nothing had happened (design,
    decision 8). It carries `more_bytes` more of each packet than hosts' links do: the program's
    header between edges.
    """

    __slots__ = (
        "bytes",
        "counts",
        "far",
        "far_port",
        "latency_ps",
        "layer",
        "level",
        "more_bytes",
        "packets",
        "queue",
        "wire",
    )

    def __init__(
        self,
        scenario: Scenario,
        layer: str,
        far: int,
        far_port: int,
        wire: Wire,
        memory: SharedMemory | None = None,
        edge_header_bytes: int = 0,
    ) -> None:
        self.level = level = LEVEL_OF[layer]
        self.more_bytes = 0 if level == Level.HOST else edge_header_bytes
        self.latency_ps = scenario.latencies_ps[level]
        self.queue = _queue(scenario, level, memory, self.more_bytes)
        self.queue.foresee_rates(
            (pace.time_ps, scenario.link_bps(level, pace.share)) for pace in wire.paces
        )

        self.layer = layer
        self.far = far
        self.far_port = far_port
        self.bytes = 0
        self.packets = 0
        self.counts = dict.fromkeys(PORT_COUNTERS, 0)
        self.wire = wire

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Passage | None:
        """Take in a packet; return its way through the port, None where it is dropped.

        An urgent packet has the size of a cut packet.
        """
        passage = self.queue.offer(now_ps, size, is_urgent)
        if passage is None:
            self.counts["dropped"] += 1
            return None

        self.counts["trimmed"] += passage.is_urgent and not is_urgent
        self.bytes += passage.size
        self.packets += 1
        return passage


def _queue(
    scenario: Scenario, level: Level, memory: SharedMemory | None, more_bytes: int
) -> OutputQueue:
    gap_bytes = scenario.packets.gap_bytes
    if is_paused(scenario):
        return PausableQueue(scenario.rates_bps[level], gap_bytes)

    trim_to = scenario.ack_bytes + more_bytes if scenario.transport.trimming else 0
    if memory is not None:
        return SharedQueue(
            scenario.rates_bps[level], memory, gap_bytes, scenario.fabric.queue_bytes, trim_to
        )

    return OutputQueue(
        scenario.rates_bps[level],
        scenario.fabric.queue_bytes or None,
        gap_bytes=gap_bytes,
        trim_to=trim_to,
    )


def ports_of(
    scenario: Scenario, switch: int, wires: Wires, edge_header_bytes: int = 0
) -> dict[int, Port]:
    """Return the ports of a switch by their numbers."""
    tree = scenario.tree
    memory = memory_of(scenario, switch, edge_header_bytes)
    return {
        number: _port(
            scenario,
            tree,
            switch,
            number,
            wires.behind(switch, number),
            memory,
            edge_header_bytes,
        )
        for number in tree.ports(switch)
    }


def memory_of(scenario: Scenario, switch: int, more_bytes: int = 0) -> SharedMemory | None:
    """Return the memory that a switch's ports share, None where each has a buffer."""
    if not is_shared(scenario):
        return None

    return SharedMemory(memory_bytes(scenario, switch, more_bytes), alpha(scenario))


def _port(
    scenario: Scenario,
    tree: FatTree,
    switch: int,
    number: int,
    wire: Wire,
    memory: SharedMemory | None,
    edge_header_bytes: int,
) -> Port:
    layer = tree.layer_of(switch, number)
    far = tree.neighbour(switch, number)
    if far is None:
        node, far_port = tree.switches + tree.host_at(switch, number), 0
    else:
        node, far_port = far.switch, far.port

    return Port(
        scenario,
        layer,
        far=node,
        far_port=far_port,
        wire=wire,
        memory=memory,
        edge_header_bytes=edge_header_bytes,
    )
