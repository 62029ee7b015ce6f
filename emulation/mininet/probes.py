"""Probes of a program's edges on real links: the controller sends them, as packet-outs.

A run has probes from its start to its end. A turn that is late is sent late; turns that have been
missed are left out.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from controller.errors import SwitchError
from controller.fleet import Fleet
from controller.liveness import MOST_PROBES_PER_SECOND
from emulation.errors import UnsupportedError
from emulation.mininet.limits import SWITCHES_ON_A_PATH
from emulation.mininet.loop import Loop
from emulation.programs.probes import (
    PACKET_OUT,
    Timer,
    destination,
    frame,
    refuse_probe_storm,
    timer_of,
)
from emulation.programs.switch_program import CPU_PORT, SwitchProgram
from fattree.experiment.model import Scenario
from fattree.units import PS_PER_NS, PS_PER_SECOND, PS_PER_US

US_PER_SECOND = PS_PER_SECOND // PS_PER_US


class EdgeProbes:
    """Sends probes through the sessions of the present `fleet`, between `start` and `stop`."""

    def __init__(
        self, scenario: Scenario, timer: Timer, loop: Loop, fleet: Callable[[], Fleet]
    ) -> None:
        self._scenario = scenario
        self._timer = timer
        self._loop = loop
        self._fleet = fleet
        self._origin_ns = 0
        self._turn = 0
        # A timer of the loop cannot be taken back: that of an earlier run finds another number.
        self._number = 0

    def start(self, origin_ns: int) -> None:
        """Send probes from an instant of CLOCK_MONOTONIC on, which is time 0."""
        self.stop()
        self._origin_ns = origin_ns
        self._turn = 0
        self._await(self._number)

    def stop(self) -> None:
        """Send no more."""
        self._number += 1

    def _due_ns(self, turn: int) -> int:
        return self._origin_ns + -(-self._timer.due_ps(turn) // PS_PER_NS)

    def _await(self, number: int) -> None:
        self._loop.at(self._due_ns(self._turn), lambda: self._send(number))

    def _send(self, number: int) -> None:
        if number != self._number:
            return

        sessions = self._fleet().sessions
        turn = self._turn % self._timer.turns
        tree = self._scenario.tree
        for edge in range(tree.edges):
            packet = frame(self._scenario, edge, destination(tree, edge, turn))
            # A switch that cannot be reached sends none, as if it were off.
            with suppress(SwitchError, KeyError):
                sessions[edge].packet_out(CPU_PORT, packet[len(PACKET_OUT) :])

        self._turn += 1
        while self._due_ns(self._turn + 1) < time.monotonic_ns():
            self._turn += 1

        self._await(number)


def edge_probes(
    scenario: Scenario, program: SwitchProgram, loop: Loop, fleet: Callable[[], Fleet]
) -> EdgeProbes | None:
    """Return the sender of a program's probes, None for a program without probes."""
    timer = timer_of(scenario, program)
    return EdgeProbes(scenario, timer, loop, fleet) if timer and timer.turns else None


def refuse_unable_probes(scenario: Scenario, program: SwitchProgram) -> None:
    """Raise UnsupportedError where real switches or links could not keep up with probes."""
    refuse_probe_storm(scenario, program)
    timer = timer_of(scenario, program)
    if timer is None:
        return

    if scenario.controller.kind == "bgp":
        raise UnsupportedError(
            'controller.kind = "bgp": each switch has a controller of its own, and none sends'
            " the probes of PROBE_INTERVAL_US"
        )

    # The bound is of probes that cross a link; these cross the fabric.
    hops = scenario.tree.edges * timer.turns * SWITCHES_ON_A_PATH
    if hops * PS_PER_SECOND > MOST_PROBES_PER_SECOND * timer.interval_ps:
        least_us = -(-hops * US_PER_SECOND // MOST_PROBES_PER_SECOND)
        rate = scenario.tree.edges * timer.turns * PS_PER_SECOND / timer.interval_ps
        raise UnsupportedError(
            f"PROBE_INTERVAL_US = {timer.interval_ps // PS_PER_US}: {rate:,.0f} probes/s through"
            f" {SWITCHES_ON_A_PATH} switches each are more than software switches carry beside"
            f" traffic: at least -D PROBE_INTERVAL_US={least_us}"
        )
