"""The virtual network at native speed: compiled programs in the windows of the simulator.

The same switches' tables, controller, hosts' rules and bytes as `fabric`, and the same outcome, its
digest included; `sim.kernels.events` moves the packets in place of `network`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from emulation.outcomes.outcome import Accounts, FlowResult, Outcome, PortResult, QueueSamples
from emulation.outcomes.reading import FlowReading, PortReading, by_port
from emulation.programs.switch_program import SwitchProgram, built_in, program_size
from emulation.virtual.control import Control
from emulation.virtual.event_log import EventLog
from emulation.virtual.events import Clock
from emulation.virtual.fabric import refuse_edge_header, refuse_unsupported
from emulation.virtual.network import SAMPLES_PER_RTT
from emulation.virtual.ports import Port, ports_of
from emulation.virtual.timed import Compile, TimedRun
from emulation.virtual.wires import Wires
from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS, kept
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from sim.programs.programmed import Counts
from sim.runs.results import Result


class NativeFabric(Control):
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    With `has_digest`, the outcome has the hash of all events. Raises the errors of `VirtualFabric`.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: SwitchProgram | None = None,
        *,
        compile_for: Compile,
        has_digest: bool = True,
        threads: int = 1,
        demand: Demand | None = None,
    ) -> None:
        refuse_unsupported(scenario)
        loaded = program or built_in(scenario.scheme.program, program_size(scenario))
        refuse_edge_header(scenario, loaded)
        super().__init__(scenario, loaded, Clock(), demand=demand)
        self._edge_header_bytes = loaded.edge_header_bytes
        self._log = EventLog(self.demand) if has_digest else None
        self.timed = TimedRun(
            self.demand,
            compile_for([switch.pipeline for switch in self.switches if switch.pipeline]),
            self.clock,
            sample_ps=scenario.zero_load_rtt_ps // SAMPLES_PER_RTT,
            on_events=self._log.note if self._log else None,
            threads=threads,
        )
        packets = self.timed.packets
        self.start(
            self.timed.at,
            lambda *changes: packets.set_links(LinkState.without(scenario.tree, *changes)),
        )
        self.probe(self.timed.at, self._idle_ports, packets.depth)

    def _idle_ports(self) -> list[dict[int, Port]]:
        """Return the switches' ports without their queues' contents."""
        wires = Wires(self.scenario, self.line)
        return [
            ports_of(self.scenario, switch, wires, self._edge_header_bytes)
            for switch in range(self.scenario.tree.switches)
        ]

    def advance(self, until_ps: int, is_late: Callable[[], bool] = lambda: False) -> None:
        """Let time pass to an instant, also beyond the end of all flows.

        `is_late` is asked now and then, and ends it before. `run` is impossible afterwards.
        """
        self.timed.advance(until_ps, is_late)

    def give_up(self, limit_ps: int) -> None:
        """Raise FailedRunError where flows cannot be complete by `limit_ps`, or ever."""
        self.timed.give_up(limit_ps)

    @property
    def is_finished(self) -> bool:
        """Return whether all flows are complete."""
        return not len(self.timed.packets.unfinished)

    def port_reading(self) -> PortReading:
        """Return the counters of all switches' ports."""
        return by_port(self.scenario.tree, self.timed.packets.ports_now())

    def flow_reading(self) -> FlowReading:
        """Return the progress of all flows."""
        return FlowReading(*self.timed.packets.flows_now())

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> Outcome:
        """Run until all flows are done.

        Raises EmulationError where they are not by the horizon, by default the scenario's, or ever.
        """
        began_s = time.process_time()
        limit_ps = self.scenario.horizon_ps if horizon_ps is None else horizon_ps
        self.timed.simulate(limit_ps, on_progress)
        result, counts = self.timed.packets.result()
        return self._outcome(result, counts, time.process_time() - began_s)

    def _outcome(self, result: Result, counts: Counts, cpu_seconds: float) -> Outcome:
        longest = self.timed.packets.longest()
        sample_ps = self.timed.packets.frames.sample_ps
        return Outcome(
            demand=self.demand,
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
            cpu_seconds=cpu_seconds,
            host_paused_ps=result.host_paused_ps,
        )


def _flow_results(result: Result) -> list[FlowResult]:
    flows = result.flows
    columns = {
        "source": flows.source,
        "destination": flows.destination,
        "packets": flows.packets,
        "planned_ps": flows.start_ps,
        "start_ps": result.start_ps,
        "first_ps": result.first_ps,
        "done_ps": result.done_ps,
        **kept(SENDER_COUNTERS, result),
    }
    return [FlowResult(flow=flow, **row) for flow, row in enumerate(_rows(columns))]


def _port_results(tree: FatTree, result: Result) -> list[PortResult]:
    ports = result.ports
    columns = {
        "packets": ports.packets,
        "bytes": ports.bytes,
        "max_queue_bytes": ports.max_queue_bytes,
        "mean_queue_bytes": ports.queue_byte_ps / max(result.end_ps, 1),
        **kept(PORT_COUNTERS, ports),
    }
    places = [(switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
    return [
        PortResult(switch=switch, port=port, layer=tree.layer_of(switch, port), **row)
        for (switch, port), row in zip(places, _rows(columns), strict=True)
    ]


def _rows(columns: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return (dict(zip(columns, row, strict=True)) for row in rows)
