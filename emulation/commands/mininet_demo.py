"""The end of `ofan demo`: Ofan over real veths and in virtual time; a command breaks a link."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from controller.convergence import Convergence
from emulation.commands.on_mininet import only_scenario
from emulation.errors import EmulationError
from emulation.held.commands import Held
from emulation.held.server import control_server
from emulation.mininet.building import mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import Run
from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import FailureEvent, Failures, Scenario
from fattree.texts.experiment_file import load_experiment
from fattree.units import PS_PER_MS, PS_PER_NS
from hostagent.isolation import clean_environment, python_command

LINK = "agg0_0-core0_0"
OVERRIDES = ("policies=ofan", "failures.convergence_rtt=0.5")
# Early: the command takes time to start, and traffic must still run when it arrives.
BREAK_AFTER_SLOTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """The same collective on Mininet and in virtual time, the same link broken at the same time."""

    real: Outcome
    virtual: Outcome
    installation: Convergence

    def words(self) -> str:
        """Return the result in one line."""
        after = (self.installation.took_ps or 0) / PS_PER_MS
        return (
            f"Real packets over {self.real.hops:,} veth hops;"
            f" `ofan link down {LINK}` broke a link after"
            f" {self.installation.at_ps / PS_PER_MS:.0f} ms,"
            f" the new schedules were installed {after:.0f} ms later. The collective took"
            f" {self.real.cct_ps / self.virtual.cct_ps:.2f} times as long as on the virtual"
            " network, because it ran in real time on a busy machine."
        )


def run_twins(file: Path) -> Twins:
    """Run an experiment file's fabric on Mininet, then in virtual time with the same failure."""
    # Mininet runs first: the time of the command is known only afterwards.
    scenario = only_scenario(load_experiment(file, list(OVERRIDES)))
    with mininet_fabric(scenario) as fabric:
        real = _run_and_break(fabric)
        installation = fabric.installations[0]

    return Twins(
        real, VirtualFabric(_with_failure(scenario, installation.at_ps)).run(), installation
    )


def _with_failure(scenario: Scenario, at_ps: int) -> Scenario:
    event = FailureEvent(link=LINK, down_ns=at_ps / PS_PER_NS)
    failures = Failures(events=(event,), convergence_rtt=scenario.failures.convergence_rtt)
    return scenario.model_copy(update={"failures": failures})


def _run_and_break(fabric: MininetFabric) -> Outcome:
    """Run the traffic, and let a process send a command meanwhile, as a user would."""
    held = Held(fabric, lambda _line: None)
    run = Run(fabric, fabric.scenario)
    with control_server(fabric.folder, fabric.loop.selector, held.handlers), _commands() as command:
        run.start(with_events=False)
        fabric.call_at(
            BREAK_AFTER_SLOTS * fabric.scenario.slot_ps, partial(command, "link", "down", LINK)
        )
        fabric.loop.run(lambda: run.is_over)

    # The run may have ended before the command arrived, or before routes changed.
    if not fabric.installations or fabric.installations[0].took_ps is None:
        raise EmulationError(
            f"`ofan link down {LINK}` came too late: the machine is too busy for Mininet"
        )

    return run.outcome()


@contextmanager
def _commands() -> Iterator[Callable[..., object]]:
    """Yield a function that starts `ofan` commands without waiting for them."""
    started: list[subprocess.Popen[bytes]] = []

    def command(*arguments: str) -> None:
        quiet = subprocess.DEVNULL
        started.append(
            subprocess.Popen(
                python_command("ofan", *arguments),
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                env=clean_environment(),
            )
        )

    try:
        yield command
    finally:
        # No process stays as a zombie, or talks to a network that no longer exists.
        for process in started:
            process.wait()
