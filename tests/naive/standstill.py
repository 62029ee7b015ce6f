"""A run that is stuck for good: its flows send, nothing is new, and nothing will change."""

from typing import TYPE_CHECKING

from tests.naive.events import Kind
from tests.naive.wire import NEVER

if TYPE_CHECKING:
    from tests.naive.network import Network

# So many packets of each flow, and so much time between two looks, without anything new: nearly
# always more than needed. Fifteen erasure senders at a buffer of two packets had news after 280.
IN_VAIN = 100
IN_VAIN_RTTS = 3


class Standstill:
    """Looks at a network from time to time, and counts the looks without anything new."""

    def __init__(self) -> None:
        self.next_look_ps = 0
        self.looked_ps = -1
        self.was_changing = False
        self.sent_then: dict[int, int] = {}
        self.looks = 0

    def is_there(self, network: "Network", now_ps: int) -> bool:
        """Return whether flows have sent without success for so long that the run is stuck."""
        if now_ps < self.next_look_ps:
            return False

        # A packet may wait long at any link of its way, there and back: each look is after all that
        # was on a link, or waited for it, at the one before.
        rtt_ps = network.scenario.zero_load_rtt_ps
        self.next_look_ps = max([now_ps + IN_VAIN_RTTS * rtt_ps, *arrivals(network)])
        began = [flow for flow in network.flows if flow.started_ps != NEVER]
        still = [flow for flow in began if flow.done_ps == NEVER]
        sent = {flow.number: flow.tries for flow in began}
        # Also after the last change one begins anew.
        was_changing, self.was_changing = self.was_changing, is_changing(network, now_ps)
        has_moved = moved_ps(network) > self.looked_ps or not all(flow.packets for flow in still)
        if has_moved or self.was_changing or was_changing:
            self.looked_ps = now_ps
            self.looks = 0
            self.sent_then = sent
            return False

        self.looks += 1
        return self.looks > 2 * network.wire.longest_path and all(
            sent[flow] >= self.sent_then.get(flow, 0) + IN_VAIN
            for flow in sent
            if flow in network.unfinished
        )


def arrivals(network: "Network") -> list[int]:
    """Return when packets arrive that are on links, or wait for them."""
    return [event[0] for event in network.events if event[1] is Kind.ARRIVE]


def is_changing(network: "Network", now_ps: int) -> bool:
    """Return whether links or routes will change, or a link's rate or outage."""
    kinds = (Kind.LINKS, Kind.ROUTES)
    slow = [*network.slow.values(), *network.slow_hosts.values()]
    return (
        any(event[1] in kinds for event in network.events)
        or any(now_ps < until_ps < NEVER for _, _, until_ps in network.host_outages)
        or any(now_ps < since_ps for steps in slow for since_ps, _ in steps)
    )


def moved_ps(network: "Network") -> int:
    """Return the time of the last progress: an ACK with news, a start, an end."""
    now_ps = network.now_ps
    starts = [flow.started_ps for flow in network.flows if flow.started_ps <= now_ps]
    ends = [flow.done_ps for flow in network.flows if flow.done_ps <= now_ps]
    return max([network.learnt_ps, *starts, *ends])
