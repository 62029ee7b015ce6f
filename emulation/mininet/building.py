"""Bring a scenario's Mininet network up, and take it down again, also after an error."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulation.errors import UnsupportedError
from emulation.mininet.agents import agents
from emulation.mininet.bgp.routers import refuse_without_frr, routers_in
from emulation.mininet.capture import captures
from emulation.mininet.detection import refuse_too_many_probes
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.kernel import own_namespace, refuse_if_unable
from emulation.mininet.limits import refuse_unsupported
from emulation.mininet.loop import Loop
from emulation.mininet.losses import lose_packets
from emulation.mininet.probes import refuse_unable_probes
from emulation.mininet.run_folder import RUN_FOLDER, run_folder
from emulation.mininet.switch_processes import switches
from emulation.mininet.targets import SOFTSWITCH, Target
from emulation.programs.edge_headers import refuse_edge_header
from emulation.programs.switch_program import Compiler, SwitchProgram, built_in, program_size
from emulation.taps import Tap, prefix_of
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from hostagent.isolation import clean
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.daemon.bursts import burst_key, compiled_bursts
from ofan_p4.softswitch.native import machine
from ofan_p4.softswitch.native.engine import native_program


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a network: its kind of switches, their program, and the ports to capture.

    Without a program the load balancer's own is compiled by `compiler`.
    """

    target: Target = SOFTSWITCH
    program: SwitchProgram | None = None
    taps: tuple[Tap, ...] = ()
    captured: Path = Path()
    agents: int = 1
    folder: Path = RUN_FOLDER
    compiler: Compiler = "ofan"


@contextmanager
def mininet_fabric(scenario: Scenario, setup: Setup = Setup()) -> Iterator[MininetFabric]:
    """Bring a scenario's network up, ready to run, and take it down again.

    Raises UnsupportedError, NetworkError, BusyError and StartError where a part cannot be built,
    ControllerError where switches refuse an entry.
    """
    target = setup.target
    refuse_unsupported(scenario)
    refuse_if_unable()
    refuse_too_many_probes(scenario)
    refuse_what_target_lacks(scenario, target)
    if scenario.controller.kind == "bgp":
        refuse_without_frr(scenario.tree, has_planners=True)

    program = setup.program or built_in(
        scenario.scheme.program,
        program_size(scenario),
        target.priorities(scenario),
        setup.compiler,
    )

    refuse_edge_header(scenario, program)
    refuse_unable_probes(scenario, program)

    # Mininet is a package of the system's, which need not be here until now.
    from emulation.mininet.topology import fat_tree, host_processes

    # Everything is undone in the opposite order: sessions end before switches, switches before
    # their interfaces, and the folder's lock is the last thing to go.
    with ExitStack() as stack:
        stack.enter_context(_ended_like_an_interrupt())
        stack.enter_context(clean())
        kept = _keep_machine_code(program) if target is SOFTSWITCH else ()
        folder = stack.enter_context(run_folder(setup.folder))
        stack.enter_context(own_namespace())
        routers = (
            stack.enter_context(routers_in(scenario.tree, folder))
            if scenario.controller.kind == "bgp"
            else None
        )
        loop = Loop()
        stack.callback(loop.close)
        network = stack.enter_context(fat_tree(scenario.tree))
        hosts = host_processes(network, scenario.tree)
        lose_packets(scenario, hosts)
        processes = stack.enter_context(
            switches(scenario, target, folder, kept, program.edge_header_bytes)
        )
        senders = stack.enter_context(agents(scenario.tree, hosts, loop, setup.agents))

        for capture in stack.enter_context(
            captures(
                setup.taps, hosts, setup.captured, prefix_of(scenario, setup.program is not None)
            )
        ):
            loop.watch(capture.socket, capture.drain)

        fabric = MininetFabric(
            scenario,
            loop,
            switches=processes,
            agents=senders,
            program=program,
            folder=folder,
            routers=routers,
        )
        stack.callback(fabric.close)
        fabric.connect()
        yield fabric


def _keep_machine_code(program: SwitchProgram) -> tuple[str, ...]:
    """Make the program's machine code once, and return the keys that it is kept under.

    The switches run as the user `nobody`, and cannot keep it.
    """
    # A switch refuses a program that it cannot run with a message of its own.
    with suppress(PipelineError):
        native_program(program.bmv2_json)
        compiled_bursts()
        return machine.program_identity(program.bmv2_json), burst_key()

    return ()


def refuse_what_target_lacks(scenario: Scenario, target: Target) -> None:
    """Raise UnsupportedError where a scenario needs more than its kind of switches can."""
    if is_paused(scenario) and target.refused_pauses:
        raise UnsupportedError(f'fabric.flow_control = "pfc": {target.refused_pauses}')

    detection = scenario.controller.detection
    if reason := target.refused_detections.get(detection):
        raise UnsupportedError(f"controller.detection = {detection}: {reason}")


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that everything is taken down."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before: list[Any] = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
