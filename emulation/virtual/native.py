"""The virtual network at native speed: compiled programs in the windows of the simulator.

The same switches' tables, controller, hosts' rules and bytes as `fabric`, and the same outcome, its
digest included; what differs is who moves the packets (`sim.programs`, instead of `network`).
"""

import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from numpy.typing import NDArray

from emulation.errors import EmulationError, ProgramError
from emulation.outcomes.outcome import Accounts, FlowResult, Outcome, PortResult, QueueSamples
from emulation.programs.switch_program import SwitchProgram, built_in
from emulation.softswitch.switch import Switch
from emulation.virtual.control import Control
from emulation.virtual.event_log import EventLog
from emulation.virtual.events import Clock, Kind
from emulation.virtual.fabric import default_horizon_ps, refuse_unsupported
from emulation.virtual.hosts import complaint
from emulation.virtual.network import SAMPLES_PER_RTT
from fattree.addressing import host_ip, host_mac
from fattree.experiment import Scenario
from fattree.flows import Flows
from fattree.topology import FatTree
from fattree.units import PS_PER_US
from hostagent.packets import Beginnings, beginnings
from hostagent.state import NEVER
from sim.frames import Program
from sim.programmed import Counts, Layout, Programmed, kept_bytes
from sim.results import Result
from sim.state import MISDELIVERED
from sim.windows import BROKEN, FINISHED, STUCK

# How often progress is told, in zero-load round trips.
RTTS_A_LEG = 4


class Machine(Protocol):
    """A program that switches run, compiled: C functions and a context for every switch."""

    @property
    def program(self) -> Program:
        """Return where the functions are, and the switches' contexts."""

    @property
    def layout(self) -> Layout:
        """Return what the program needs of every packet."""

    def settle(self) -> None:
        """Let packets see all that the control plane has changed."""


# Compiles what switches have loaded, once their pipelines are set.
Compile = Callable[[Sequence[Switch]], Machine]


class NativeFabric(Control):
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    With `has_digest`, the outcome has the hash of all events. Raises what `VirtualFabric` does.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: SwitchProgram | None = None,
        *,
        compile_for: Compile,
        has_digest: bool = True,
        threads: int = 1,
    ) -> None:
        refuse_unsupported(scenario)
        super().__init__(
            scenario,
            program or built_in(scenario.scheme.program, scenario.tree.half),
            Clock(),
        )
        machine = compile_for(self.switches)
        # It must live as long as its functions are called.
        self._machine = machine
        self._log = EventLog(scenario) if has_digest else None
        size = kept_bytes(scenario, machine.layout)
        self.packets = Programmed(
            scenario,
            machine.program,
            machine.layout,
            lambda flows: templates(scenario, flows, size),
            sample_ps=scenario.zero_load_rtt_ps // SAMPLES_PER_RTT,
            on_events=self._log.note if self._log else None,
            threads=threads,
        )
        self._events: list[tuple[int, int, int, Callable[[], object]]] = []
        self._sequence = 0
        self.start(self.at, self.packets.set_failed)

    def at(self, time_ps: int, kind: Kind, action: Callable[[], object]) -> None:
        """Let something happen at a time: a link event or an act of the controller."""
        self._sequence += 1
        heappush(self._events, (time_ps, kind, self._sequence, action))

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> Outcome:
        """Run until all flows are done; raises EmulationError where they are not by the horizon.

        By default that is `fattree.horizon`'s.
        """
        began_s = time.process_time()
        self.simulate(horizon_ps, on_progress)
        result, counts = self.packets.result()
        return self._outcome(result, counts, time.process_time() - began_s)

    def simulate(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> None:
        """Run until all flows are done, as `run`."""
        limit_ps = default_horizon_ps(self.scenario) if horizon_ps is None else horizon_ps
        leg_ps = RTTS_A_LEG * self.scenario.zero_load_rtt_ps if on_progress else NEVER
        packets = self.packets
        try:
            while True:
                self._happen()
                next_ps = self._events[0][0] if self._events else NEVER
                until_ps = min(next_ps, limit_ps + 1, packets.now_ps + leg_ps)
                status = packets.advance(until_ps)
                if on_progress:
                    on_progress(packets.progress)

                if status == FINISHED:
                    return

                self._refuse(status, limit_ps)
                if status == STUCK:
                    packets.skip_to(until_ps)
        finally:
            packets.close()

    def _happen(self) -> None:
        """Let everything happen that is due now, after the packets that leave now."""
        now_ps = self.packets.now_ps
        self.clock.now_ps = now_ps
        if self._events and self._events[0][0] <= now_ps and now_ps:
            self.packets.leave_now()

        while self._events and self._events[0][0] <= now_ps:
            heappop(self._events)[-1]()

        self._machine.settle()

    def _refuse(self, status: int, limit_ps: int) -> None:
        """Raise what ends a run that is not finished: its program, or its horizon."""
        packets = self.packets
        if status == BROKEN:
            raise self._broken()

        if packets.now_ps > limit_ps or (status == STUCK and not self._events):
            now_us = min(packets.now_ps, limit_ps) / PS_PER_US
            flows = packets.network.flows
            names = complaint(
                self.scenario.tree,
                [
                    (int(flows.source[flow]), int(flows.destination[flow]))
                    for flow in packets.unfinished.tolist()
                ],
            )
            raise EmulationError(f"at {now_us:.3f} us, {names}")

    def _broken(self) -> EmulationError:
        now_us = self.packets.now_ps / PS_PER_US
        if self.packets.world.counters[MISDELIVERED]:
            return ProgramError(
                f"at about {now_us:.3f} us, a host got a frame that is not its own:"
                " the program has sent it there, or changed whose it is"
            )

        return ProgramError(
            "the program clones, resubmits, recirculates or sends digests, which only"
            " --engine python serves"
        )

    def _outcome(self, result: Result, counts: Counts, cpu_seconds: float) -> Outcome:
        longest = self.packets.longest()
        sample_ps = self.packets.frames.sample_ps
        return Outcome(
            scenario=self.scenario,
            flows=tuple(_flow_results(result)),
            ports=tuple(_port_results(self.scenario.tree, result)),
            samples=QueueSamples(
                tuple(range(0, len(longest) * sample_ps, sample_ps)),
                tuple(map(tuple, longest.tolist())),
            ),
            accounts=Accounts(*counts[: len(Accounts.__slots__)]),
            digest=self._log.hexdigest if self._log else "",
            end_ps=result.end_ps,
            hops=counts.hops,
            freezes=int(result.freezes.sum()),
            cpu_seconds=cpu_seconds,
        )


def templates(scenario: Scenario, flows: Flows, size: int) -> Beginnings:
    """Return the first bytes of the frames of all flows."""
    tree = scenario.tree
    here, there = flows.source, flows.destination
    # MAC addresses are made of IPv4 addresses, by addition of the same prefix for all hosts.
    prefix = host_mac(tree, 0) - host_ip(tree, 0)
    ends = (
        host_ip(tree, here) + prefix,
        host_ip(tree, there) + prefix,
        host_ip(tree, here),
        host_ip(tree, there),
    )
    return beginnings(ends, scenario.packets.payload_bytes, size)


def _flow_results(result: Result) -> list[FlowResult]:
    flows = result.flows
    columns: tuple[NDArray[Any], ...] = (
        flows.source,
        flows.destination,
        flows.packets,
        flows.start_ps,
        result.start_ps,
        result.first_ps,
        result.done_ps,
        result.transmissions,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [FlowResult(flow, *row) for flow, row in enumerate(rows)]


def _port_results(tree: FatTree, result: Result) -> list[PortResult]:
    ports = result.ports
    columns = (
        ports.packets,
        ports.load_bytes,
        ports.dropped,
        ports.marked,
        ports.lost,
        ports.max_bytes,
    )
    mean = ports.byte_ps / max(result.end_ps, 1)
    rows = zip(*(column.tolist() for column in columns), mean.tolist(), strict=True)
    places = [(switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
    return [
        PortResult(switch, port, tree.layer_of(switch, port), *row)
        for (switch, port), row in zip(places, rows, strict=True)
    ]
