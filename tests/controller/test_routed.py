"""Switches that follow their own routes, each by itself, and the record of a change."""

from collections.abc import Sequence

import numpy as np
import pytest

import p4src
from controller.convergence import Convergence
from controller.fabric_controller import LinkChange, Step
from controller.pipeline import Pipeline
from controller.routed import ReportedController, RoutedController, RoutedDriver
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
    """A clock moved by hand, planners with the routes of a fabric, and an observer of both."""

    def __init__(self) -> None:
        self.now_ps = 1_000_000
        self.told: list[frozenset[int]] = []
        pipeline = Pipeline.read(p4src.p4info_path("ofan"))
        self.planners = RoutedController(SCENARIO, pipeline)
        self.controller = ReportedController(SCENARIO, pipeline)
        self.driver = RoutedDriver(
            self.controller,
            clock=lambda: self.now_ps,
            tell_hosts=lambda failed, _slow: self.told.append(failed),
        )
        self.follow(range(TREE.first_core), routes())

    def plan(self, switch: int, weights: Ints) -> list[Step]:
        """Let a switch's planner follow its routes, and report that."""
        steps = self.planners.on_routes(0, switch, weights)
        self.now_ps += 10_000
        report = {
            "weights": weights.tolist(),
            "ids": self.planners.ids(switch),
            "updates": sum(len(step.changes) for step in steps),
            "planned_ns": self.now_ps // 1_000 - 5,
            "at_ns": self.now_ps // 1_000,
        }
        self.driver.follow(switch, report)
        return steps

    def follow(self, switches: Sequence[int], weights: list[Ints]) -> None:
        for switch in switches:
            self.plan(switch, weights[switch])


@pytest.fixture
def world() -> World:
    return World()


def test_a_switch_is_written_to_when_its_own_routes_change(world: World) -> None:
    after = routes(CORE_LINK)
    moved = next(
        switch for switch in range(TREE.edges) if (after[switch] != routes()[switch]).any()
    )
    assert {step.switch for step in world.plan(moved, after[moved])} == {moved}

    # The same routes again are no news.
    assert not world.plan(moved, after[moved])


def test_an_observer_knows_the_entries_of_all_switches_by_their_reports(world: World) -> None:
    # Back and forth, so that schedules have other ids than in the first plan.
    for failed in ((CORE_LINK,), (CORE_LINK, OTHER_LINK), (OTHER_LINK,)):
        world.follow(range(TREE.first_core), routes(*failed))
        for switch in range(TREE.first_core):
            assert world.controller.entries(switch) == dict(world.planners.entries(switch))


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
    assert convergence.failed_ps is not None and convergence.planned_ps is not None
    assert convergence.failed_ps < convergence.detected_ps == convergence.planned_ps
    assert (
        convergence.installed_ps is not None and convergence.planned_ps < convergence.installed_ps
    )
    assert called == [convergence]
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


def test_a_report_from_before_a_change_does_not_count_for_it(world: World) -> None:
    failed = frozenset({CORE_LINK})
    world.now_ps += 100_000
    world.driver.note(failed)
    convergence = world.driver.begin(LinkChange(down=failed), failed)
    world.now_ps -= 100_000
    moved = next(
        switch for switch, rows in enumerate(routes(0)) if (rows != routes()[switch]).any()
    )
    world.plan(moved, routes(0)[moved])
    assert convergence.planned_ps is None and convergence.updates == 0


def test_routes_are_compared_by_ratios(world: World) -> None:
    ratios = uplink_ratios(TREE, frozenset({CORE_LINK}), "bgp")
    assert not world.controller.has_routes(ratios)
    for switch, weights in enumerate(ratios):
        world.controller.note(switch, 3 * weights, [])

    assert world.controller.has_routes(ratios)
    assert not world.controller.has_routes([np.zeros_like(rows) for rows in ratios])
