"""A virtual network of P4 switches, driven through P4Runtime by the real controller.

Programs run in the windows of the simulator (`sim.kernels.events`): as machine code, or as Python
where they have no machine code.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from emulation.outcomes.outcome import Accounts, FlowResult, Outcome, PortResult, QueueSamples
from emulation.outcomes.reading import FlowReading, PortReading, by_port
from emulation.programs.edge_headers import refuse_edge_header
from emulation.programs.probes import refuse_probe_storm, timer_of
from emulation.programs.strays import strays_told
from emulation.programs.switch_program import SwitchProgram, built_in, program_size
from emulation.taps import Tap
from emulation.virtual.capture import Captures
from emulation.virtual.control import Control
from emulation.virtual.event_log import EventLog
from emulation.virtual.events import Clock
from emulation.virtual.interpreted import machine_of
from emulation.virtual.machine import only_python
from emulation.virtual.refusals import refuse_unsupported
from emulation.virtual.timed import TimedRun
from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS, kept
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from ofan_p4.softswitch.control.pipeline import Engine
from sim.programs.programmed import Counts, Observe, Programmed
from sim.runs.results import Result

# Hashing every event takes ten times as long as moving its packet: larger runs have no digest.
FEW_PACKETS = 2_000_000
MOST_SWITCHES = 5
# Samples of the queues' lengths.
SAMPLES_PER_RTT = 64


class VirtualFabric(Control):
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    A program runs as Python where it has no machine code (`why_python` is the reason, a line), or
    where it `is_interpreted`. `demand` is the scenario's, where it has been worked out before. With
    `has_digest`, the outcome has the hash of all events, if fewer than FEW_PACKETS pass switches.
    `files` get the packets of their ports. Raises UnsupportedError for features that virtual time
    lacks, FabricError and ControllerError for scenarios that cannot be built.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: SwitchProgram | None = None,
        *,
        is_interpreted: bool = False,
        has_digest: bool = True,
        threads: int = 1,
        demand: Demand | None = None,
        files: Mapping[Tap, BinaryIO] | None = None,
    ) -> None:
        refuse_unsupported(scenario)
        loaded = program or built_in(scenario.scheme.program, program_size(scenario))
        refuse_edge_header(scenario, loaded)
        refuse_probe_storm(scenario, loaded)
        self.why_python = only_python(scenario, loaded)
        is_interpreted = is_interpreted or bool(self.why_python)
        engine: Engine = "python" if is_interpreted else "native"
        super().__init__(scenario, loaded, Clock(), engine, demand=demand)
        is_hashed = has_digest and self._most_packets < FEW_PACKETS
        self._log = EventLog(self.demand) if is_hashed else None
        observers = [self._log.note] if self._log else []
        if files:
            observers.append(Captures(self.demand, files).note)

        self._pipelines = [switch.pipeline for switch in self.switches if switch.pipeline]
        self.timed = TimedRun(
            self.demand,
            machine_of(scenario, self._pipelines, loaded.edge_header_bytes, is_interpreted),
            self.clock,
            timer=timer_of(scenario, loaded),
            sample_ps=scenario.zero_load_rtt_ps // SAMPLES_PER_RTT,
            on_events=partial(_tell, observers) if observers else None,
            threads=threads,
        )
        packets = self.timed.packets
        self.start(
            self.timed.at,
            lambda *changes: packets.set_links(LinkState.without(scenario.tree, *changes)),
        )
        self.probe(self.timed.at, packets.depth)

    @property
    def _most_packets(self) -> int:
        """Return about how many packets pass switches, ACKs included."""
        return 2 * MOST_SWITCHES * int(self.demand.flows.packets.sum())

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
        with strays_told(self._pipelines):
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


def _tell(observers: Sequence[Observe], run: Programmed, rows: NDArray[np.int64]) -> None:
    for observe in observers:
        observe(run, rows)


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
