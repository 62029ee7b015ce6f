"""Ports that are down: which packet a machine sends next, and from which of its NICs."""

from dataclasses import dataclass

from fattree.experiment.model import Scenario
from tests.naive.host import Flow, Host
from tests.naive.packet import DATA, Packet
from tests.naive.wire import NEVER, Wire

# A step of a machine: the NIC that sends, and the flow if it is another NIC's.
Step = tuple[Host, Flow | None]


@dataclass(slots=True)
class Planes:
    """The NICs of a machine, its flows without a ready plane, and its last event.

    `outages` are (host, from, until) of all hosts, `news_ps` is how late a machine hears of others.
    """

    nics: list[Host]
    outages: list[tuple[int, int, int]]
    news_ps: int
    moved: list[Flow]
    event_ps: int = 0
    last: int = 0
    moves: int = 0

    @classmethod
    def give(
        cls, scenario: Scenario, firsts: list[Host], outages: list[tuple[int, int, int]]
    ) -> None:
        """Give each machine its planes, by the first host of each."""
        for first in firsts:
            planes = cls(first.nics, outages, Wire(scenario).zero_load_rtt_ps // 2, [])
            for nic in first.nics:
                nic.planes = planes

    def is_up(self, host: int, now_ps: int) -> bool:
        return not any(of == host and since <= now_ps < to for of, since, to in self.outages)

    def is_ready(self, nic: int, peer: int, now_ps: int) -> bool:
        """Return whether this machine may use a plane: its own port, and the peer's as it knows."""
        return self.is_up(nic, now_ps) and self.is_up(peer, now_ps - self.news_ps)

    def answering(self, host: Host, flow: Flow, now_ps: int) -> Host:
        """Return the NIC that acknowledges a packet to a host: the next that is ready."""
        first = self.nics.index(host)
        sender = flow.source % len_of_plane(self.nics)
        for nic in self.nics[first:] + self.nics[:first]:
            plane = self.nics.index(nic) * len_of_plane(self.nics)
            if self.is_ready(nic.number, sender + plane, now_ps):
                return nic
        return host

    def away(self, flow: Flow, now_ps: int) -> tuple[int, Host] | None:
        """Return when and where a flow's packet leaves if its own plane is not ready."""
        if self.is_ready(flow.source, flow.destination, now_ps):
            return None

        ways = []
        count = len(self.nics)
        for turn in range(1, count + 1):
            nic = self.nics[(self.last + turn) % count]
            if nic.number == flow.source:
                continue
            send_ps = max(now_ps, nic.idle_ps, nic.data_free_ps)
            if self.is_ready(nic.number, flow.destination + nic.number - flow.source, send_ps):
                ways.append((send_ps, turn, nic))
        return (min(ways)[0], min(ways)[2]) if ways else None

    def first_moved(self) -> tuple[int, Flow | None]:
        ready = [(flow.sender.ready_ps(), flow.number, flow) for flow in self.moved]
        ready = [entry for entry in ready if entry[2].is_active]
        return (min(ready)[0], min(ready)[2]) if ready else (NEVER, None)

    def next_packet(self, now_ps: int) -> tuple[Host, Packet | None]:
        """Return the packet that leaves now, None if none does, and its NIC."""
        step = self.step(now_ps)
        if step is None:
            return self.nics[0], None

        nic, moved = step
        self.event_ps = now_ps
        packet = nic.next_packet(now_ps, moved)
        if moved and packet and packet.kind == DATA:
            self.last = self.nics.index(nic)
        return nic, packet

    def step(self, now_ps: int) -> Step | None:
        """Return the machine's packet of now, after all flows that have to move have moved."""
        while True:
            host = next((nic for nic in self.nics if nic.sends_ps() <= now_ps), None)
            if host and host.first_ready()[0] <= now_ps:
                flow = host.flow_of(host.first_ready()[1])
                if self.away(flow, now_ps):
                    self.move(flow, now_ps)
                    continue

            ready_ps, moved = self.first_moved()
            due_ps = max(self.event_ps, ready_ps)
            if moved is None or due_ps > now_ps:
                return (host, None) if host else None

            way = self.away(moved, due_ps)
            if way is None:
                moved.is_moved = False
                self.moved.remove(moved)
                self.moves += 1
                self.event_ps = now_ps
                continue

            send_ps, nic = way
            own_ps = nic.ready_ps()
            is_later = own_ps < ready_ps and max(own_ps, nic.data_free_ps) <= send_ps
            if send_ps > now_ps or is_later:
                return (host, None) if host else None

            return nic, moved

    def move(self, flow: Flow, now_ps: int) -> None:
        """Let other NICs send a flow; packets under way count against no value of its labels."""
        self.moves += 1
        flow.is_moved = True
        self.moved.append(flow)
        self.event_ps = now_ps
        for packet in flow.sender.memory.packets.values():
            packet.is_counted = True
            packet.first_label = None

    def next_ps(self, now_ps: int) -> int:
        """Return when the machine acts next, if nothing arrives until then."""
        times_ps = [nic.wake_ps(now_ps) for nic in self.nics]
        ready_ps, moved = self.first_moved()
        if moved is not None and ready_ps < NEVER:
            due_ps = max(self.event_ps, ready_ps)
            way = self.away(moved, due_ps)
            times_ps.append(way[0] if way else due_ps)
        return max(min(times_ps), now_ps)


def len_of_plane(nics: list[Host]) -> int:
    """Return how many hosts a plane has: its NICs are so far apart."""
    return nics[1].number - nics[0].number
