"""Probes in virtual time: packet-outs, links, and packet-ins of switches in this process.

Probes have a priority queue of their own that is always empty, so they take a link's latency and
their own length, and disturb no data: a run that detects failures by probes and has none is the run
that does not probe.
"""

from collections.abc import Callable, Sequence
from functools import partial

from controller.fabric_controller import LinkChange
from controller.liveness import Liveness, Probe
from controller.session import Session
from emulation.virtual.events import At, Clock, Kind
from fattree.routes.probed import Crossings
from ofan_p4.softswitch.control.switch import Switch


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
