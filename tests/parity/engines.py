"""A scenario in windows of machine code and on the virtual network: alike in every field."""

from dataclasses import fields

from emulation.errors import EmulationError
from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Scenario
from tests.python_network.fabric import PythonFabric


def native(scenario: Scenario, threads: int = 1) -> VirtualFabric:
    return VirtualFabric(scenario, threads=threads)


def assert_same(ours: Outcome, theirs: Outcome) -> None:
    assert ours.scenario == theirs.scenario
    for field in fields(Outcome):
        if field.name not in ("cpu_seconds", "demand"):
            assert getattr(ours, field.name) == getattr(theirs, field.name), field.name


def outcome_of(scenario: Scenario, horizon_ps: int | None = None) -> Outcome:
    """Return the outcome of both for a scenario, events included; raises the error of both."""
    try:
        theirs = PythonFabric(scenario).run(horizon_ps)
    except EmulationError as error:
        # Behind the flows stand storms: those of the time at which each gave up.
        complaint = str(error).partition(" µs, ")[2].partition(";")[0]
        try:
            native(scenario).run(horizon_ps)
        except EmulationError as native_error:
            assert str(native_error).partition(" µs, ")[2].partition(";")[0] == complaint
            raise

        raise AssertionError(f"machine code ends where the network does not: {complaint}") from None

    assert_same(native(scenario).run(horizon_ps), theirs)
    return theirs
