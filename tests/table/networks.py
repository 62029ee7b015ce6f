"""The columns of the table: each runs a scenario, or refuses it in a line.

Kernels, P4 programs over the simulator's windows and the virtual network must agree to the digit.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

import sim
from controller.errors import ControllerError
from emulation.errors import FailedRunError, UnsupportedError
from emulation.mininet import limits
from emulation.mininet.building import Setup, mininet_fabric, refuse_what_target_lacks
from emulation.mininet.run import run_on
from emulation.mininet.targets.bmv2 import BMV2
from emulation.mininet.targets.softswitch import SOFTSWITCH
from emulation.mininet.targets.target import Target
from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.simulated import program_of
from emulation.virtual.simulated import run as run_programs
from fattree.errors import FabricError
from fattree.experiment.model import Experiment, Scenario
from tests.parity import test_programs_equal_kernels, test_virtual_equals_simulator
from tests.table.rows import BASE, Settings, merged

RUNS = "yes"
ACCEPTED = "accepted"
REFUSALS = (FabricError, UnsupportedError, ControllerError)
# Links of real processes are so much slower, so that a packet takes some milliseconds. Buffers that
# pause have room for the packets that come in until processes heed a pause.
SLOWER = 80_000
USUAL: Settings = {"rate_gbps": 800, "latency_ns": 500}
PAUSED_BYTES = 2_000_000


def at_real_rates(settings: Settings) -> Settings:
    """Return the content of an experiment with links that software switches can fill."""
    fabric = {**({} if "topology" in settings.get("fabric", {}) else USUAL), **settings["fabric"]}
    for key in fabric:
        if key.endswith("_gbps"):
            fabric[key] /= SLOWER
        elif key.endswith("latency_ns"):
            fabric[key] *= SLOWER

    if fabric.get("flow_control") == "pfc":
        fabric["queue_bytes"] = PAUSED_BYTES

    return {**settings, "fabric": fabric}


def scenario_of(settings: Settings, change: Callable[[Settings], Settings] = dict) -> Scenario:
    """Return the first scenario of an experiment's content, with its program, if any.

    `change` makes another content of all of it.
    Raises ValidationError for content that the schema refuses.
    """
    experiment = Experiment.model_validate(change(merged(BASE, settings)))
    program = experiment.program
    if program is None:
        return next(experiment.scenarios())

    first = next(experiment.model_copy(update={"policies": (program.like,)}).scenarios())
    return first.model_copy(update={"program": program.file})


def cells(settings: Settings, on_mininet: bool = False) -> dict[str, str]:
    """Return a row's cells by network: "yes", or "refused: " and why.

    On Mininet "accepted" means that nothing refuses the scenario and it has not been run.
    Raises AssertionError where networks disagree.
    """
    try:
        scenario = scenario_of(settings)
        real = scenario_of(settings, at_real_rates)
    except ValidationError as error:
        return dict.fromkeys(NETWORKS, f"refused: {error.errors()[0]['msg']}")

    results: dict[str, object] = {}
    row = {name: _cell(run, scenario, results, name) for name, run in EXACT.items()}
    _assert_same(results)
    for name, target in TARGETS.items():
        row[name] = _real_cell(real, target, on_mininet)

    return row


def _cell(
    run: Callable[[Scenario], object], scenario: Scenario, results: dict[str, object], name: str
) -> str:
    try:
        results[name] = run(scenario)
    except FailedRunError:
        raise
    except REFUSALS as error:
        return f"refused: {error}"

    return RUNS


def _on_kernels(scenario: Scenario) -> sim.Result:
    return sim.run(scenario)


def _on_virtual(scenario: Scenario) -> Outcome:
    network = VirtualFabric(scenario.model_copy(update={"program": None}), program_of(scenario))
    # The user's program has its name in results, which nothing else of the scenario shows.
    return replace(network.run(), own_program=scenario.own_name)


def _assert_same(results: Mapping[str, object]) -> None:
    """Compare the networks' results for a scenario, each with the first."""
    programmed = results.get("sim, P4 program")
    kernel = results.get("sim, kernel")
    outcome = results.get("virtual")
    if isinstance(kernel, sim.Result) and isinstance(programmed, sim.Result):
        test_programs_equal_kernels.assert_same(programmed, kernel)

    result = programmed if kernel is None else kernel
    if isinstance(outcome, Outcome) and isinstance(result, sim.Result):
        test_virtual_equals_simulator.assert_same(outcome, result)


def _real_cell(scenario: Scenario, target: Target, is_run: bool) -> str:
    """Return the cell of a network of processes."""
    try:
        limits.refuse_unsupported(scenario)
        refuse_what_target_lacks(scenario, target)
        if is_run:
            with TemporaryDirectory() as folder:
                _run_processes(scenario, target, Path(folder))
    except REFUSALS as error:
        return f"refused: {error}"

    return RUNS if is_run else ACCEPTED


def _run_processes(scenario: Scenario, target: Target, folder: Path) -> None:
    program = None if scenario.program is None else program_of(scenario)
    setup = Setup(target=target, program=program, folder=folder / "run")
    with mininet_fabric(scenario.model_copy(update={"program": None}), setup) as fabric:
        run_on(fabric)


EXACT: Mapping[str, Callable[[Scenario], object]] = {
    "sim, kernel": _on_kernels,
    "sim, P4 program": run_programs,
    "virtual": _on_virtual,
}
TARGETS: Mapping[str, Target] = {"Mininet": SOFTSWITCH, "Mininet, BMv2": BMV2}
NETWORKS = (*EXACT, *TARGETS)
