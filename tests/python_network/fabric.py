"""The readable network in virtual time, a judge of the product's: switches, controller, packets."""

import time
from collections.abc import Callable

import numpy as np

from emulation.outcomes.outcome import Outcome
from emulation.outcomes.reading import FlowReading, PortReading, by_port
from emulation.programs.edge_headers import refuse_edge_header
from emulation.programs.probes import destination, frame, refuse_probe_storm, timer_of
from emulation.programs.switch_program import CPU_PORT, SwitchProgram, built_in, program_size
from emulation.virtual.control import Control
from emulation.virtual.events import Clock
from emulation.virtual.machine import QUEUE_LENGTHS
from emulation.virtual.refusals import refuse_unsupported
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.routes.demand import Demand
from ofan_p4.softswitch.control.pipeline import Engine
from tests.python_network.lossless import LosslessNetwork
from tests.python_network.network import Network
from tests.python_network.wires import Wires

EVENTS_AT_ONCE = 200


class PythonFabric(Control):
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    `demand` is the scenario's, where it has been worked out before. Raises UnsupportedError for
    features that virtual time lacks, FabricError and ControllerError for scenarios that cannot be
    built.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: SwitchProgram | None = None,
        engine: Engine = "auto",
        demand: Demand | None = None,
    ) -> None:
        refuse_unsupported(scenario)
        loaded = program or built_in(scenario.scheme.program, program_size(scenario))
        refuse_edge_header(scenario, loaded)
        refuse_probe_storm(scenario, loaded)
        super().__init__(scenario, loaded, Clock(), engine, demand=demand)
        wires = Wires(scenario, self.line)
        self.network = (
            LosslessNetwork(self.demand, self.switches, self.clock, wires, loaded.edge_header_bytes)
            if is_paused(scenario)
            else Network(
                self.demand,
                self.switches,
                self.clock,
                wires,
                loaded.edge_header_bytes,
                timer=timer_of(scenario, loaded),
            )
        )
        self.network.on_drop = self.forget
        self.start(self.network.at, self.network.hosts.converge)
        self._turn = 0
        self._timer = timer_of(scenario, loaded)
        if self._timer is not None:
            self._await_turn()

        self.probe(
            self.network.at,
            lambda switch, port: self.network.ports[switch][port].queue.depth_packets(
                self.clock.now_ps
            ),
        )

    def _await_turn(self) -> None:
        assert self._timer is not None
        self.network.at_last(self._timer.due_ps(self._turn), self._send_probes)

    def _send_probes(self) -> None:
        """Let each edge send the probe of a turn."""
        assert self._timer is not None
        for edge in range(self.scenario.tree.edges):
            to = destination(self.scenario.tree, edge, self._turn % self._timer.turns)
            self.network.send_probe(edge, frame(self.scenario, edge, to), CPU_PORT)

        self._turn += 1
        self._await_turn()

    def forget(self, switch: int, port: int, size: int) -> None:
        """Take a tail drop out of the program's queue length at once.

        The packet never comes to egress, so that the program itself, as on BMv2, finds out when the
        queue is next empty; the run model knows no such error.
        """
        # Ingress added it when it sent the packet to the port (include/queue_stats.p4).
        pipeline = self.switches[switch].pipeline
        assert pipeline is not None
        for array, cells in zip(pipeline.program.registers, pipeline.registers, strict=True):
            if array.name == QUEUE_LENGTHS:
                cells[port] -= size

    def advance(self, until_ps: int, is_late: Callable[[], bool] = lambda: False) -> None:
        """Let time pass to an instant, also beyond the end of all flows.

        `is_late` is asked now and then, and ends it before.
        """
        while self.network.advance(until_ps, EVENTS_AT_ONCE) and not is_late():
            pass

    def give_up(self, limit_ps: int) -> None:
        """Raise FailedRunError where flows cannot be complete by `limit_ps`, or ever."""
        self.network.give_up(limit_ps)

    @property
    def is_finished(self) -> bool:
        """Return whether all flows are complete."""
        return not self.network.hosts.unfinished

    def port_reading(self) -> PortReading:
        """Return the counters of all switches' ports."""
        now_ps = self.clock.now_ps
        ports = [port for of_switch in self.network.ports for port in of_switch.values()]
        # Ports count bytes when they are enqueued; carried bytes have left.
        queued = [port.queue.occupancy_bytes(now_ps) for port in ports]
        columns = (
            [port.bytes - waiting for port, waiting in zip(ports, queued, strict=True)],
            queued,
            [port.queue.max_bytes for port in ports],
            [port.counts["dropped"] for port in ports],
            [port.counts["lost_to_failure"] for port in ports],
        )
        return by_port(self.scenario.tree, columns)

    def flow_reading(self) -> FlowReading:
        """Return the progress of all flows."""
        hosts = self.network.hosts
        flows = range(len(hosts.done_ps))
        columns = (
            [hosts.acknowledged(flow) for flow in flows],
            [hosts.started_ps(flow) for flow in flows],
            hosts.done_ps,
        )
        return FlowReading(*np.array(columns, dtype=np.int64))

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> Outcome:
        """Run until all flows are done.

        Raises EmulationError where they are not by the horizon, by default the scenario's, or ever.
        """
        started = time.process_time()
        self.network.run(
            self.scenario.horizon_ps if horizon_ps is None else horizon_ps, on_progress
        )
        return self.network.outcome(time.process_time() - started)
