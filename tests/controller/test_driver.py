"""The driver of a controller in a run: its callbacks, and the instants that it records."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import p4src
from controller.driver import Driver
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.pipeline import Pipeline
from fattree.experiment.model import Fabric, Failures, Scenario

CORE_LINK, OTHER_LINK = 16, 17
SCENARIO = Scenario(fabric=Fabric(k=4), failures=Failures(convergence_rtt=2))


class World:
    """A clock, a timer and hands that only remember."""

    def __init__(self) -> None:
        self.now_ps = 1_000
        self.timers: list[tuple[int, Callable[[], object]]] = []
        self.written: list[Sequence[Step]] = []
        self.told: list[frozenset[int]] = []
        self.driver = Driver(
            FabricController(SCENARIO, Pipeline.read(p4src.p4info_path("ofan"))),
            clock=lambda: self.now_ps,
            at=lambda time_ps, action: self.timers.append((time_ps, action)),
            write=self.written.append,
            tell_hosts=lambda failed, _slow: self.told.append(failed),
        )
        self.driver.start()
        self.written.clear()

    def pass_time(self) -> None:
        """Let everything that is due happen."""
        while self.timers:
            self.now_ps, action = self.timers.pop(0)
            action()


@pytest.fixture
def world() -> World:
    return World()


def test_whoever_waits_for_a_change_is_called_when_its_routes_are_in(world: World) -> None:
    called: list[Any] = []
    world.driver.when_followed(LinkChange(down=frozenset({CORE_LINK})), called.append)
    world.driver.when_followed(LinkChange(down=frozenset({OTHER_LINK})), called.append)
    convergence = world.driver.learn(LinkChange(down=frozenset({CORE_LINK})))
    assert called == [] and world.written == []

    world.pass_time()
    assert called == [convergence]
    assert world.told == [frozenset({CORE_LINK})] and len(world.written) == 1
    assert convergence.took_ps == SCENARIO.convergence_ps

    # Once each: the next change repeats no call.
    world.driver.learn(LinkChange(up=frozenset({CORE_LINK})))
    world.pass_time()
    assert called == [convergence]


def test_instants_count_from_the_start_of_the_run(world: World) -> None:
    world.driver.note([CORE_LINK])
    world.now_ps += 500
    convergence = world.driver.learn(LinkChange(down=frozenset({CORE_LINK})))
    assert (convergence.failed_ps, convergence.detected_ps) == (1_000, 1_500)

    world.driver.set_origin(600)
    assert (convergence.failed_ps, convergence.detected_ps) == (400, 900)
    assert world.driver.now_ps() == 900
