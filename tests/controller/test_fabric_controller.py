"""The fabric's controller: events in, timed steps out, and only changes."""

import pytest

import p4src
from controller.fabric_controller import FabricController, LinkChange
from controller.pipeline import Pipeline
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.topology import FatTree

TREE = FatTree(4)
OFAN = Pipeline.read(p4src.p4info_path("ofan"))
CORE_LINK = 16


def controller(
    convergence_rtt: float = 0, failed: frozenset[int] = frozenset()
) -> FabricController:
    """Return the controller of Ofan at k = 4."""
    settings = {
        "policy": "ofan",
        "fabric": Fabric(k=4),
        "failures": {"convergence_rtt": convergence_rtt},
    }
    return FabricController(Scenario.model_validate(settings), OFAN, failed)


@pytest.mark.parametrize("rtts", [0, 2, 10])
def test_updates_are_due_after_g(rtts: int) -> None:
    brain = controller(rtts)
    brain.start()
    rtt_ps = brain.scenario.zero_load_rtt_ps
    steps = brain.on_event(5_000, LinkChange(down=frozenset({CORE_LINK})))
    assert {step.time_ps for step in steps} == {5_000 + rtts * rtt_ps}


def test_routes_never_change_when_g_is_infinite() -> None:
    brain = controller(float("inf"))
    assert brain.start()
    assert brain.on_event(0, LinkChange(down=frozenset({CORE_LINK}))) == []
    assert brain.failed == {CORE_LINK}


def test_the_first_plan_covers_every_switch() -> None:
    assert {step.switch for step in controller().start(7)} == set(range(TREE.switches))


def test_cores_never_hear_of_a_failure() -> None:
    brain = controller()
    brain.start()
    steps = brain.on_event(0, LinkChange(down=frozenset({CORE_LINK, 3})))
    assert max(step.switch for step in steps) < 2 * TREE.edges


def test_only_switches_whose_plan_changes_are_told() -> None:
    """The link between edge0_0 and agg0_0: edge0_0 leaves it, all other edges skip it towards
    edge0_0, aggs stay.
    """
    brain = controller()
    brain.start()
    told = {step.switch for step in brain.on_event(0, LinkChange(down=frozenset({0})))}
    assert told == set(range(TREE.edges))


def test_an_event_that_changes_nothing_sends_nothing() -> None:
    brain = controller()
    brain.start()
    brain.on_event(0, LinkChange(down=frozenset({CORE_LINK})))
    assert brain.on_event(1, LinkChange(down=frozenset({CORE_LINK}))) == []


def test_links_that_are_down_from_the_start_are_in_the_first_plan() -> None:
    early, late = controller(failed=frozenset({CORE_LINK})), controller()
    early.start()
    late.start()
    late.on_event(0, LinkChange(down=frozenset({CORE_LINK})))
    for switch in range(TREE.switches):
        assert len(early.entries(switch)) == len(late.entries(switch))
    assert early.on_event(0, LinkChange(up=frozenset({CORE_LINK}))) != []


def test_events_within_g_follow_each_other() -> None:
    brain = controller(2)
    brain.start()
    first = brain.on_event(0, LinkChange(down=frozenset({CORE_LINK})))
    second = brain.on_event(1_000, LinkChange(up=frozenset({CORE_LINK})))
    assert max(step.time_ps for step in first) < min(step.time_ps for step in second)
    assert {step.switch for step in first} == {step.switch for step in second}
