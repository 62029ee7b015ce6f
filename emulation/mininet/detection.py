"""Detection of failures by the controller of a Mininet network: from netlink, or by probes."""

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from controller.errors import SwitchError
from controller.fabric_controller import LinkChange
from controller.fleet import Fleet
from controller.link_monitor import LinkMonitor
from controller.liveness import MOST_PROBES_PER_SECOND, Liveness, liveness, probes_per_second
from emulation.errors import UnsupportedError
from emulation.mininet.loop import Loop
from fattree.experiment.model import Scenario
from fattree.routes.failures import Links
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_NS, PS_PER_SECOND, PS_PER_US

# Probes under way are counted when none has arrived for SETTLING_SECONDS; a busy machine gets more.
SETTLING_SECONDS = 0.1
MOST_SETTLING_SECONDS = 5
OnChange = Callable[[LinkChange], object]


class Probing:
    """Sends probes and catches them.

    Packet-ins come from the sessions' threads and wait for the next tick.
    """

    def __init__(
        self, fleet: Fleet, probing: Liveness, flight_s: float, loop: Loop, on_change: OnChange
    ) -> None:
        self._fleet = fleet
        self._liveness = probing
        self._flight_s = flight_s
        self._loop = loop
        self._on_change = on_change
        self._caught: SimpleQueue[tuple[int, int, bytes]] = SimpleQueue()
        self._is_open = True
        # A queue, because all else belongs to the loop's thread.
        fleet.on_packet_in = lambda switch, port, frame: self._caught.put((switch, port, frame))
        loop.at(probing.next_tick_ps // PS_PER_NS, self._tick)

    def lost(self) -> int:
        """Return how many probes have not arrived so far, when those under way have had time to."""
        time.sleep(self._flight_s)
        heard = -1
        limit = time.monotonic() + MOST_SETTLING_SECONDS

        while heard < self._liveness.heard and time.monotonic() < limit:
            heard = self._liveness.heard
            time.sleep(SETTLING_SECONDS)
            self._take_in()

        return self._liveness.sent - self._liveness.heard

    @property
    def sure_ps(self) -> int:
        """Return after which time the state of all links is known."""
        # A failure is found after `misses` to `misses` + 1 intervals (`controller.liveness`).
        return (self._liveness.misses + 1) * self._liveness.interval_ps

    def close(self) -> None:
        """Send no more."""
        self._is_open = False

    def _tick(self) -> None:
        # The loop knows no way to take a timer back.
        if not self._is_open:
            return

        self._take_in()
        probes, change = self._liveness.tick(monotonic_ps())
        for probe in probes:
            # A switch that cannot be reached sends no probe; its links fall silent, as they should.
            with suppress(SwitchError):
                self._fleet.sessions[probe.switch].packet_out(probe.port, probe.frame)

        if change != LinkChange():
            self._on_change(change)

        self._loop.at(self._liveness.next_tick_ps // PS_PER_NS, self._tick)

    def _take_in(self) -> None:
        with suppress(Empty):
            while True:
                self._liveness.on_probe(*self._caught.get_nowait())


class Listening:
    """Gets changes of links from the kernel, at once and without packets of its own."""

    sure_ps = 0

    def __init__(self, tree: FatTree, loop: Loop, on_change: OnChange) -> None:
        self._monitor = LinkMonitor(tree)
        self._loop = loop
        self._on_change = on_change
        loop.watch(self._monitor, self._read)

        # Links that were down before the monitor began.
        if self._monitor.down:
            on_change(LinkChange(down=self._monitor.down))

    def lost(self) -> int:
        """Return how many packets of its own have been lost."""
        return 0

    def close(self) -> None:
        """Stop listening."""
        self._loop.unwatch(self._monitor)
        self._monitor.close()

    def _read(self) -> None:
        change = self._monitor.read()
        if change != LinkChange():
            self._on_change(change)


def monotonic_ps() -> int:
    """Return CLOCK_MONOTONIC in picoseconds."""
    return time.monotonic_ns() * PS_PER_NS


def detector(
    scenario: Scenario, fleet: Fleet, loop: Loop, failed: Links, on_change: OnChange
) -> Probing | Listening | None:
    """Start the detection of failures in a running network; `failed` are known.

    None where the network announces them.
    """
    if scenario.controller.detection == "netlink":
        return Listening(scenario.tree, loop, on_change)

    probing = liveness(scenario, monotonic_ps(), failed)
    flight_s = max(scenario.latencies_ps) / PS_PER_SECOND
    return Probing(fleet, probing, flight_s, loop=loop, on_change=on_change) if probing else None


def refuse_too_many_probes(scenario: Scenario) -> None:
    """Raise UnsupportedError where real switches could not keep up with their probes."""
    probing = liveness(scenario)
    if probing and (rate := probes_per_second(scenario, probing)) > MOST_PROBES_PER_SECOND:
        least_us = probing.interval_ps * rate / MOST_PROBES_PER_SECOND / PS_PER_US
        raise UnsupportedError(
            f"controller.probe_interval_us = {probing.interval_ps / PS_PER_US:g}:"
            f" {rate:,.0f} probes/s are more than software switches carry beside traffic:"
            f" at least --set controller.probe_interval_us={least_us:.0f}"
        )
