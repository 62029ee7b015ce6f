"""Experiments on Mininet: run a scenario, or keep its network for commands."""

from collections.abc import Callable
from pathlib import Path

from emulation.errors import UnsupportedError
from emulation.held.commands import describe, hold
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import run_on
from emulation.mininet.targets import Target
from emulation.outcomes.outcome import Outcome
from emulation.programs.switch_program import Compiler, SwitchProgram
from emulation.taps import tap_named
from fattree.experiment.model import Experiment, Scenario

Echo = Callable[[str], object]


def setup(
    experiment: Experiment,
    target: Target,
    ports: tuple[str, ...],
    folder: Path,
    program: SwitchProgram | None = None,
    *,
    compiler: Compiler = "ofan",
) -> Setup:
    """Return the setup of an experiment's networks; captures go to `folder`.

    Raises UnsupportedError for unknown ports.
    """
    # All scenarios of an experiment have the same ports.
    taps = tuple(tap_named(next(experiment.scenarios()).tree, port) for port in ports)
    if taps:
        folder.mkdir(parents=True, exist_ok=True)

    return Setup(target, program, taps, folder, compiler=compiler)


def run_on_mininet(scenario: Scenario, setup: Setup = Setup()) -> Outcome:  # noqa: B008
    """Run a scenario on a new Mininet network.

    Raises the errors of `mininet_fabric` and `MininetFabric.run`.
    """
    with mininet_fabric(scenario, setup) as fabric:
        return run_on(fabric)


def runner(setup: Setup) -> Callable[[Scenario, Callable[[float], None]], Outcome]:
    """Return a function that runs a scenario on Mininet; it reports no progress."""
    return lambda scenario, _on_progress: run_on_mininet(scenario, setup)


def hold_on_mininet(experiment: Experiment, setup: Setup, echo: Echo) -> None:
    """Run an experiment's only scenario once, then keep its network for commands until Ctrl-C."""
    scenario = only_scenario(experiment)
    with mininet_fabric(scenario, setup) as fabric:
        echo(f"the network is up: {_sizes(fabric)}")
        first = run_on(fabric)
        echo(f"traffic {describe(first)}")
        echo(
            "commands from another terminal: ofan status, ofan link down NAME, ofan traffic start;"
            " Ctrl-C takes the network down"
        )

        try:
            hold(fabric, echo, first)
        except KeyboardInterrupt:
            echo("taking the network down")


def only_scenario(experiment: Experiment) -> Scenario:
    """Return the scenario of an experiment with one load balancer and one seed.

    Raises UnsupportedError for several.
    """
    scenarios = list(experiment.scenarios())
    if len(scenarios) > 1:
        policies = ", ".join(dict.fromkeys(scenario.balancer for scenario in scenarios))
        raise UnsupportedError(
            f"--hold keeps one network, but this experiment has {len(scenarios)} runs"
            f" ({policies}; {experiment.seeds} seeds):"
            f" choose one with --policies {scenarios[0].policy} --seeds 1"
        )

    return scenarios[0]


def _sizes(fabric: MininetFabric) -> str:
    tree = fabric.tree
    return (
        f"{tree.switches} {fabric.switches.target.name} switches, {tree.hosts} hosts,"
        f" {tree.links} links between switches"
    )
