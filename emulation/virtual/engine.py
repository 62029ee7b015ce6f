"""Which engine runs a scenario in virtual time: machine code where it can, else Python.

The only place that decides it. Outcomes are equal, so it is a matter of time alone.
"""

from collections.abc import Callable
from functools import partial
from typing import get_args

from emulation.errors import UnsupportedError
from emulation.programs.switch_program import SwitchProgram, built_in, program_size
from emulation.virtual.fabric import VirtualFabric, refuse_unsupported
from emulation.virtual.machine import NativeMachine, headers_of, why_not
from emulation.virtual.native import NativeFabric
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.routes.standstill import patience
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.native.engine import native_program
from sim.programs.programmed import are_compiled

ENGINES: tuple[Engine, ...] = get_args(Engine)


# Of a run with fewer packets through switches the Python network sees the end before numba has
# compiled the kernels, which it does once.
FEW_HOPS = 2_000_000
MOST_SWITCHES = 5
# With so many packets through switches the Python network ends at once.
QUICK_HOPS = 100_000
NOT_COMPILED = (
    "kernels for programs are not compiled yet; `ofan emulate --engine native` compiles"
    " them, once, in half a minute"
)


def fabric(
    scenario: Scenario,
    program: SwitchProgram | None = None,
    engine: Engine = "auto",
    say: Callable[[str], object] = lambda _line: None,
    has_digest: bool = True,
) -> VirtualFabric | NativeFabric:
    """Return a fabric that is ready to run.

    Where machine code would be taken and is impossible, `say` gets the reason. Large runs of
    machine code have no digest of their events, and those that want none (`has_digest`). Raises the
    errors of both fabrics, and UnsupportedError where machine code is asked for and impossible.
    """
    loaded = program or built_in(scenario.scheme.program, program_size(scenario))
    if engine == "python":
        return VirtualFabric(scenario, loaded, engine)

    reason = only_python(scenario, loaded)
    if reason and engine == "native":
        raise UnsupportedError(f"--engine native: {reason}")

    if reason:
        say(f"on the Python engine: {reason}")
        return VirtualFabric(scenario, loaded)

    refuse_unsupported(scenario)
    demand = Demand.of(scenario)
    if engine == "auto" and not are_compiled() and _most_hops(demand) < FEW_HOPS:
        if _most_hops(demand) > QUICK_HOPS:
            say(f"on the Python engine: {NOT_COMPILED}")

        return VirtualFabric(scenario, loaded, demand=demand)

    # Hashing every event takes Python ten times as long as machine code takes for the packet.
    return NativeFabric(
        scenario,
        loaded,
        compile_for=partial(NativeMachine, scenario, edge_header_bytes=loaded.edge_header_bytes),
        has_digest=has_digest and _hops(demand) < FEW_HOPS,
        demand=demand,
    )


def _hops(demand: Demand) -> int:
    """Return about how many packets pass switches, ACKs included."""
    return 2 * MOST_SWITCHES * int(demand.flows.packets.sum())


def _most_hops(demand: Demand) -> int:
    """Return the same of a run that may stand still: where no route ever leads around a dead link,
    flows send until the run is given up (`routes.standstill`).
    """
    scenario, failures = demand.scenario, demand.scenario.failures
    if scenario.convergence_ps is not None or not (failures.rate > 0 or failures.events):
        return _hops(demand)

    limits = patience(scenario, demand.events)
    in_vain = len(demand.flows) * max(
        limits.tries, (limits.wait_ps + min(limits.queues_ps, limits.wait_ps)) // scenario.slot_ps
    )
    return _hops(demand) + MOST_SWITCHES * in_vain


def only_python(scenario: Scenario, program: SwitchProgram) -> str:
    """Return in a line why only the Python network can run a scenario; nothing where both can."""
    headers = headers_of(scenario, program.edge_header_bytes)
    return why_not(native_program(program.bmv2_json), headers)
