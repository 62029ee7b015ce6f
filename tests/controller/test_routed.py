"""The planners of switches that follow their own routes, and the record of a change."""

from collections.abc import Sequence

import numpy as np
import pytest

import p4src
from controller.convergence import Convergence
from controller.fabric_controller import LinkChange, Step
from controller.pipeline import Pipeline
from controller.routed import RoutedController, RoutedDriver
from fattree.experiment.model import Fabric, Scenario
from fattree.routes.bgp import AnnouncedPaths, uplink_ratios, uplink_rows
from fattree.routes.wecmp import Ints, LinkState

SCENARIO = Scenario(fabric=Fabric(k=4))
TREE = SCENARIO.tree
CORE_LINK, OTHER_LINK = TREE.edge_links, TREE.edge_links + 5


def routes(*failed: int) -> list[Ints]:
    links = LinkState.without(TREE, frozenset(failed))
    return list(uplink_rows(TREE, links, AnnouncedPaths(TREE, links)))


class World:
    """A clock moved by hand, switches with the routes of a fabric, the routes written to each."""

    def __init__(self) -> None:
        self.now_ps = 1_000
        self.written: list[Sequence[Step]] = []
        self.told: list[frozenset[int]] = []
        self.controller = RoutedController(SCENARIO, Pipeline.read(p4src.p4info_path("ofan")))
        for switch, weights in enumerate(routes()):
            self.controller.set_routes(switch, weights)

        self.driver = RoutedDriver(
            self.controller,
            clock=lambda: self.now_ps,
            write=self.written.append,
            tell_hosts=lambda failed, _slow: self.told.append(failed),
        )
        self.driver.start()
        self.written.clear()

    def follow(self, switches: Sequence[int], weights: list[Ints]) -> None:
        for switch in switches:
            self.now_ps += 10
            self.driver.follow(switch, weights[switch])


@pytest.fixture
def world() -> World:
    return World()


def test_a_switch_is_written_to_when_its_own_routes_change(world: World) -> None:
    after = routes(CORE_LINK)
    moved = next(
        switch for switch in range(TREE.edges) if (after[switch] != routes()[switch]).any()
    )
    world.driver.follow(moved, after[moved])
    assert {step.switch for steps in world.written for step in steps} == {moved}

    # The same routes again are no news.
    world.written.clear()
    world.driver.follow(moved, after[moved])
    assert not any(world.written)


def test_a_change_is_installed_with_the_last_switch_that_lacks_its_routes(world: World) -> None:
    called: list[Convergence] = []
    change = LinkChange(down=frozenset({CORE_LINK}))
    failed = frozenset({CORE_LINK})
    world.driver.note(failed)
    world.driver.when_followed(change, called.append)
    convergence = world.driver.begin(change, failed)
    switches = range(TREE.first_core)
    world.follow(switches[:-1], routes(CORE_LINK))
    lacks_last = convergence.installed_ps is None
    # A switch that reports twice counts once.
    world.follow(switches, routes(CORE_LINK))

    moved = sum((new != old).any() for new, old in zip(routes(CORE_LINK), routes(), strict=True))
    assert lacks_last is bool((routes(CORE_LINK)[-1] != routes()[-1]).any())
    assert convergence.switches == moved > 2 and convergence.updates > moved
    assert convergence.failed_ps == 1_000 < convergence.detected_ps == convergence.planned_ps
    assert convergence.installed_ps is not None and called == [convergence]
    assert world.told == [failed] and world.driver.routed == failed


def test_changes_on_their_way_are_installed_together(world: World) -> None:
    first = world.driver.begin(LinkChange(down=frozenset({CORE_LINK})), frozenset({CORE_LINK}))
    both = frozenset({CORE_LINK, OTHER_LINK})
    second = world.driver.begin(LinkChange(down=frozenset({OTHER_LINK})), both)
    world.follow(range(TREE.first_core), routes(CORE_LINK))
    assert first.installed_ps is None and second.installed_ps is None

    world.follow(range(TREE.first_core), routes(*both))
    assert first.installed_ps == second.installed_ps is not None
    assert world.told == [both]


def test_routes_are_compared_by_ratios(world: World) -> None:
    ratios = uplink_ratios(TREE, frozenset({CORE_LINK}), "bgp")
    assert not world.controller.has_routes(ratios)
    for switch, weights in enumerate(ratios):
        world.controller.set_routes(switch, 3 * weights)

    assert world.controller.has_routes(ratios)
    assert not world.controller.has_routes([np.zeros_like(rows) for rows in ratios])
