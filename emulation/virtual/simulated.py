"""The simulator with a P4 program in its switches: thousands of them, and a result as of kernels.

    from emulation.virtual.simulated import run

    result = run(Scenario(program="two_choices.p4", policy="simple_rr", fabric=Fabric(k=32)))

The entries of the controller's plan go into the switches' memory as arrays (`bulk`), and routes
follow links as in the simulator: G after the change, at each switch later by its lag.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from controller.errors import ControllerError
from controller.plan import Planner, SwitchPlan
from emulation.errors import EmulationError
from emulation.programs.edge_headers import refuse_edge_header
from emulation.programs.own_program import Loaded, own_program
from emulation.programs.probes import refuse_probe_storm, timer_of
from emulation.programs.program_files import Files, unpacked
from emulation.programs.strays import strays_told
from emulation.programs.switch_program import (
    SwitchProgram,
    built_in,
    has_host_pointers,
    program_size,
)
from emulation.virtual.bulk import Loader
from emulation.virtual.control import SwitchDraws
from emulation.virtual.events import Clock, Kind
from emulation.virtual.interpreted import machine_of
from emulation.virtual.machine import only_python
from emulation.virtual.refusals import refuse_unsupported
from emulation.virtual.timed import TimedRun
from fattree.experiment.model import BUILT_IN, Collective, Fabric, OwnProgram, Scenario
from fattree.records.record import Record
from fattree.routes.demand import Demand
from hostagent.own_packet import scenario_packets
from ofan_p4.diagnostics import CompileError
from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.control.pipeline import Pipeline
from sim import SimulationError
from sim.arrays.routing import Phase, Tables, phases
from sim.programs.programmed import is_loaded
from sim.runs.engine import OnProgress
from sim.runs.results import Result
from sim.sweeps import sweeping as sweeps

# Errors in a program, or in a scenario for it.
BAD_INPUT = (CompileError, ControllerError, EmulationError, SoftswitchError)


class SimulatedFabric:
    """The switches of one scenario and its packets; `run` ends with the result.

    Raises UnsupportedError where the simulator cannot run the program or the scenario, FabricError
    and ControllerError for scenarios that cannot be built.
    """

    def __init__(self, scenario: Scenario, program: SwitchProgram, threads: int = 1) -> None:
        self._began_s = time.process_time()
        refuse(scenario, program)
        demand = Demand.of(scenario)
        tree = scenario.tree
        is_interpreted = bool(only_python(scenario, program))
        self.scenario = scenario
        self.pipelines = [
            Pipeline(
                program.bmv2_json,
                random=SwitchDraws(scenario.seed, switch),
                has_port=tree.ports(switch).__contains__,
                engine="python" if is_interpreted else "native",
            )
            for switch in range(tree.switches)
        ]
        self._planner = Planner(scenario, program.pipeline)
        self._tables = Tables(scenario)
        self._loader = Loader(self._planner, self.pipelines[0])
        self._plans: list[SwitchPlan | None] = [None] * tree.switches
        for switch, pipeline in enumerate(self.pipelines):
            self._loader.settle(pipeline, switch)

        machine = machine_of(scenario, self.pipelines, program.edge_header_bytes, is_interpreted)
        timer = timer_of(scenario, program)
        self.timed = TimedRun(demand, machine, Clock(), timer=timer, threads=threads)
        for phase in phases(scenario, demand.events):
            self.timed.at(phase.time_ps, Kind.CONTROL, partial(self._install, phase))

    def run(self, horizon_ps: int | None = None, on_progress: OnProgress | None = None) -> Result:
        """Run until all flows are done.

        Raises EmulationError where they are not by the horizon, by default the scenario's, or ever.
        """
        limit_ps = self.scenario.horizon_ps if horizon_ps is None else horizon_ps
        with strays_told(self.pipelines):
            self.timed.simulate(limit_ps, on_progress)

        result, _ = self.timed.packets.result()
        return result

    def _install(self, phase: Phase) -> None:
        """Let all switches and hosts follow the links."""
        tables = self._tables.by_lag(phase)
        for switch, pipeline in enumerate(self.pipelines):
            plan = self._planner.plan(self._tables.lags.deal(tables, switch), switch)
            if plan != self._plans[switch]:
                self._loader.load(pipeline, plan)

            self._plans[switch] = plan

        self.timed.packets.set_links(phase.of_hosts)


def run(scenario: Scenario, *, threads: int = 1, horizon_ps: int | None = None) -> Result:
    """Simulate a scenario with its `program` in the switches, by default its load balancer's own.

    Raises the errors of `SimulatedFabric`, and CompileError, PlanError and ProgramError for a
    user's program.
    """
    return SimulatedFabric(scenario, program_of(scenario), threads).run(horizon_ps)


def program_of(scenario: Scenario) -> SwitchProgram:
    """Return the program that a scenario's switches run; raises as `run`."""
    if scenario.program in (None, BUILT_IN):
        return built_in(scenario.scheme.program, program_size(scenario))

    return own_of(scenario).program


def own_of(scenario: Scenario) -> Loaded:
    """Return the user's program that a scenario's switches run; raises as `run`."""
    return own_program(
        OwnProgram(file=str(scenario.program), like=scenario.policy),
        scenario.tree,
        scenario.defines,
        has_host_pointers(scenario),
    )


def check(scenario: Scenario) -> str:
    """Return in a line why a scenario's program runs as Python, nothing for machine code.

    Raises an error in its program or packets, or the reason why they are refused.
    """
    program = program_of(scenario)
    scenario_packets(scenario)
    refuse(scenario, program)
    return only_python(scenario, program)


def refuse(scenario: Scenario, program: SwitchProgram) -> None:
    """Raise UnsupportedError where the simulator cannot run the program or the scenario."""
    refuse_unsupported(scenario)
    refuse_edge_header(scenario, program)
    refuse_probe_storm(scenario, program)


def simulate(
    scenario: Scenario,
    threads: int = 1,
    flows: Path | None = None,
    programs: Mapping[str, Files] = MappingProxyType({}),
    on_progress: OnProgress | None = None,
) -> Record:
    """Run one scenario for a sweep: with its program, or without any by kernels.

    A folder `flows` gets a file with a row for each flow. `programs` are the files of those that
    need not lie where scenarios say. Raises the errors of `sim.sweeps.sweeping.simulate`.
    """
    if scenario.program is None:
        return sweeps.simulate(scenario, threads, flows, on_progress)

    if scenario.program in programs:
        here = str(unpacked(programs[scenario.program]))
        scenario = scenario.model_copy(update={"program": here})

    try:
        fabric = SimulatedFabric(scenario, program_of(scenario), threads)
        return sweeps.recorded(fabric.run(on_progress=on_progress), flows)
    # A sweep reports each failed run in a line.
    except BAD_INPUT as error:
        raise SimulationError(str(error)) from None


def prepare() -> None:
    """Compile the kernels around programs, or load them from the cache."""
    if not is_loaded():
        pair = Collective(matrix="pairs", pairs=((0, 1), (1, 0)), message_bytes=1)
        run(Scenario(fabric=Fabric(k=2), collective=pair))
