"""Probes in virtual time: packet-outs, links, and packet-ins of switches in this process.

Probes have a priority queue of their own that is always empty, so they take a link's latency and
their own length, and disturb no data: a run that detects failures by probes and has none is the run
that does not probe.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

from controller.fabric_controller import LinkChange
from controller.liveness import Liveness, Probe
from controller.session import Session
from emulation.virtual.events import At, Clock, Kind
from fattree.experiment.model import Scenario
from fattree.routes.failures import Timeline
from fattree.routes.slow_links import FULL, paces
from fattree.shape.topology import LEVEL_OF, LinkEnd
from hostagent.transports.state import NEVER
from ofan_p4.softswitch.control.switch import Switch

Outage = tuple[int, int]


def outages(events: Timeline) -> dict[int, list[Outage]]:
    """Return when each link between switches is down."""
    down_since: dict[int, int] = {}
    of_links: dict[int, list[Outage]] = {}
    for change in events.changes:
        down_since.update((link, change.time_ps) for link in change.down - down_since.keys())
        for link in change.up & down_since.keys():
            of_links.setdefault(link, []).append((down_since.pop(link), change.time_ps))

    for link, since_ps in down_since.items():
        of_links.setdefault(link, []).append((since_ps, NEVER))

    return of_links


class Crossings:
    """The ways of frames over the links between switches."""

    def __init__(self, scenario: Scenario, events: Timeline) -> None:
        self._scenario = scenario
        self._outages = outages(events)
        self._paces = paces(scenario).of_links

    def arrival(self, switch: int, port: int, now_ps: int, size: int) -> tuple[int, LinkEnd] | None:
        """Return when and where a frame arrives that starts now; None where the link is down."""
        tree = self._scenario.tree
        link, far = tree.link_at(switch, port), tree.neighbour(switch, port)
        assert link is not None and far is not None
        if any(down <= now_ps < up for down, up in self._outages.get(link, ())):
            return None

        steps = self._paces.get((link, port > tree.downlinks(switch)), ())
        past = bisect_right(steps, now_ps, key=attrgetter("time_ps"))
        level = LEVEL_OF[tree.layer_of(switch, port)]
        sending_ps = self._scenario.tx_ps(size, level, steps[past - 1].share if past else FULL)
        return now_ps + sending_ps + self._scenario.latencies_ps[level], far


class VirtualProbes:
    """Drives `Liveness` through the sessions of a virtual network.

    `schedule` takes actions with their times, and `depth` returns how many packets wait at a
    switch's port now. `on_change` gets the changes that probes detect.
    """

    def __init__(
        self,
        schedule: At,
        clock: Clock,
        crossings: Crossings,
        depth: Callable[[int, int], int],
        switches: Sequence[Switch],
        sessions: Sequence[Session],
        liveness: Liveness,
        on_change: Callable[[LinkChange], None],
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._crossings = crossings
        self._depth = depth
        self._switches = switches
        self._sessions = sessions
        self._liveness = liveness
        self._on_change = on_change

        for switch, session in enumerate(sessions):
            session.on_packet_in = partial(self._caught, switch)

        schedule(liveness.next_tick_ps, Kind.CONTROL, self._tick)

    def _tick(self) -> None:
        # First the verdict on earlier probes, then the next probes.
        probes, change = self._liveness.tick(self._clock.now_ps)
        if change != LinkChange():
            self._on_change(change)

        for probe in probes:
            self._send(probe)

        self._schedule(self._liveness.next_tick_ps, Kind.CONTROL, self._tick)

    def _send(self, probe: Probe) -> None:
        self._sessions[probe.switch].packet_out(probe.port, probe.frame)
        now_ps = self._clock.now_ps
        switch = self._switches[probe.switch]

        # Packets that the session sent through the CPU port have passed ingress, and wait in the
        # switch, apart from the network's own packets.
        for pending in switch.take_requeued():
            port = pending.egress_port
            for sent in switch.egress(pending, self._depth(probe.switch, port)):
                arrival = self._crossings.arrival(probe.switch, port, now_ps, len(sent.frame))
                if arrival is not None:
                    arrival_ps, far = arrival
                    # Not ARRIVE: probes are not among the packets that are counted.
                    self._schedule(
                        arrival_ps, Kind.CONTROL, partial(self._arrive, *far, sent.frame)
                    )

    def _arrive(self, switch: int, port: int, frame: bytes) -> None:
        for pending in self._switches[switch].ingress(port, frame):
            self._switches[switch].egress(pending)

    def _caught(self, switch: int, port: int, frame: bytes) -> None:
        self._liveness.on_probe(switch, port, frame)
