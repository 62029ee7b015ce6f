"""A directed link with its output queue, and what is counted there (simulator model, "Model")."""

from bisect import bisect_right
from collections.abc import Iterable

from emulation.softswitch.queue import OutputQueue
from fattree.experiment import Scenario

Outage = tuple[int, int]
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

        past = [
            (down_ps, min(up_ps, now_ps)) for down_ps, up_ps in self._outages if down_ps < now_ps
        ]
        self._outages = past if up else [*past, (now_ps, ALWAYS)]

    def is_down(self, start_ps: int) -> bool:
        """Return whether a packet whose transmission starts now is lost."""
        index = bisect_right(self._outages, (start_ps, ALWAYS + 1))
        return index > 0 and start_ps < self._outages[index - 1][1]
