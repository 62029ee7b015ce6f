"""Plans: the state of fattree.routes.forwarding as table entries, for every program and tier."""

from functools import lru_cache

import pytest

import p4src
from controller.errors import PlanError
from controller.pipeline import Pipeline
from controller.plan import Planner, SwitchPlan, bin_thresholds
from controller.reconcile import Installed, reconcile
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes.forwarding import forwarding
from fattree.routes.groups import NONE
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree, Tier
from tests.fattree.lookups import group_of


@lru_cache
def pipeline(program: str) -> Pipeline:
    """Return a program's checked-in contract."""
    return Pipeline.read(p4src.p4info_path(program))


def scenario(policy: str, k: int = 4, **sections: object) -> Scenario:
    """Return a scenario of one load balancer."""
    return Scenario.model_validate({"policy": policy, "fabric": {"k": k}, **sections})


def planned(
    chosen: Scenario, switch: int, failed: frozenset[int] = frozenset()
) -> tuple[Planner, SwitchPlan]:
    """Return the plan of a switch."""
    planner = Planner(chosen, pipeline(chosen.scheme.program))
    state = forwarding(
        chosen.tree, LinkState.without(chosen.tree, failed), chosen.scheme, chosen.seed
    )
    return planner, planner.plan(state, switch)


@pytest.mark.parametrize(
    ("switch", "south", "north"), [(0, 4, 31), (32, 4, 7), (64, 8, 0)], ids=["edge", "agg", "core"]
)
@pytest.mark.parametrize("policy", ["ofan", "simple_rr", "switch_pkt", "jsq"])
def test_every_destination_has_one_route(policy: str, switch: int, south: int, north: int) -> None:
    _, plan = planned(scenario(policy, k=8), switch)
    assert (len(plan.ports), len(plan.groups)) == (south, north)


def test_ofan_has_a_group_per_destination_and_a_schedule_per_pod() -> None:
    """Section 6 and appendix F: at k = 64 an edge has 2,047 pointers per class, an agg 63."""
    tree = FatTree(8)
    _, edge = planned(scenario("ofan", k=8), 0)
    _, agg = planned(scenario("ofan", k=8), tree.edges)
    assert len({group.number for group in edge.groups.values()}) == tree.edges - 1
    assert len({group.number for group in agg.groups.values()}) == tree.k - 1
    assert len(edge.blocks) == tree.k


def test_simple_rr_has_one_group_while_nothing_has_failed() -> None:
    _, plan = planned(scenario("simple_rr", k=8), 0)
    assert {group.number for group in plan.groups.values()} == {0}
    assert [len(block) for block in plan.blocks] == [1]


def test_switch_pkt_has_16_orders() -> None:
    _, plan = planned(scenario("switch_pkt", k=8), 0)
    assert [len(block) for block in plan.blocks] == [16]
    assert {tuple(sorted(order)) for order in plan.blocks[0]} == {(0, 1, 2, 3)}


@pytest.mark.parametrize("slug", POLICIES)
def test_settings_are_those_that_the_program_has(slug: str) -> None:
    _, plan = planned(scenario(slug), 0)
    tables_of = {
        "flow": {"hashing"},
        "simple_rr": {"orders"},
        "jsq": {"quanta"},
        "themis": {"digits"},
        "mrc_srv6": {"segments"},
    }
    expected = {
        table
        for key, tables in tables_of.items()
        if POLICIES[key].program == POLICIES[slug].program
        for table in tables
    }
    assert {table for table, _ in plan.settings} == expected | {"ecn"}


@pytest.mark.parametrize(("policy", "call"), [("rsq", 0), ("jsq", 1), ("switch_pkt_ar", 2)])
def test_adaptive_schemes_share_a_program(policy: str, call: int) -> None:
    _, plan = planned(scenario(policy, load_balancer={"bins_percent": (5, 10, 20)}), 0)
    assert plan.settings["quanta", ()] == ("set_quanta", (call, 40_000, 80_000, 160_000))


@pytest.mark.parametrize(
    ("policy", "rr_pointer", "call"),
    [
        ("simple_rr", "per_class", ("reshuffle_after", (0,))),
        ("simple_rr", "shared", ("share_pointer", ())),
        ("switch_pkt", "per_class", ("reshuffle_after", (5,))),
        ("switch_pkt", "shared", ("reshuffle_after", (5,))),
    ],
)
def test_round_robin_schemes_share_a_program(
    policy: str, rr_pointer: str, call: tuple[str, tuple[int, ...]]
) -> None:
    _, plan = planned(scenario(policy, load_balancer={"rr_pointer": rr_pointer}), 0)
    assert plan.settings["orders", ()] == call


def test_bins_are_rounded_up_exactly() -> None:
    chosen = scenario(
        "switch_pkt_ar",
        fabric={"k": 4, "threshold_bytes": 1001},
        load_balancer={"bins_percent": (0.1, 10, 30)},
    )
    assert bin_thresholds(chosen) == (2, 101, 301)


def test_weights_of_a_schedule_count_its_uplinks() -> None:
    planner, plan = planned(scenario("jsq", k=8), 0, frozenset({32 * 4}))
    entries = planner.entries(plan, [0, 1])
    (pod_7,) = {
        group.block
        for group in plan.groups.values()
        if group.number != plan.groups[(10 << 24 | 1 << 8), 24].number
    }
    assert entries["uplinks_of", (pod_7,)] == ("weigh", (5, 3, 4, 4, 4, 0, 0, 0, 0))


def test_weights_of_ofan_jsq_start_say_only_what_is_used() -> None:
    planner, plan = planned(scenario("ofan_jsq_start", k=8), 0, frozenset({32 * 4, 3}))
    entries = planner.entries(plan, list(range(len(plan.blocks))))
    assert entries["uplinks_of", (7,)] == ("weigh", (5, 1, 1, 1, 0, 0, 0, 0, 0))


@pytest.mark.parametrize("switch", [0, 5, 40, 70])
def test_host_dr_has_ways_to_waypoints_and_no_groups(switch: int) -> None:
    chosen = scenario("host_dr", k=8)
    _, plan = planned(chosen, switch)
    extra = {Tier.EDGE: 2 * 4, Tier.AGG: 4, Tier.CORE: 0}[chosen.tree.tier(switch)]
    south = 8 if chosen.tree.tier(switch) is Tier.CORE else 4
    assert (len(plan.ports), len(plan.groups), plan.blocks) == (south + extra, 0, ())


@pytest.mark.parametrize("policy", ["ofan", "simple_rr"])
def test_destinations_without_a_path_have_no_route(policy: str) -> None:
    tree = FatTree(4)
    cut = frozenset({7 * 2, 7 * 2 + 1})
    chosen = scenario(policy)
    state = forwarding(tree, LinkState.without(tree, cut), chosen.scheme, chosen.seed)
    _, plan = planned(chosen, 0, cut)
    assert group_of(state, 0, 7) == NONE
    assert len(plan.groups) == tree.edges - 2


def test_a_program_built_for_too_few_uplinks_is_refused() -> None:
    with pytest.raises(
        PlanError, match=r"compares 8 uplinks, k = 32 has 16: compile it with -D MAX_UPLINKS=16$"
    ):
        Planner(scenario("jsq", k=32), pipeline("adaptive"))


def test_a_program_with_too_few_pointers_is_refused() -> None:
    chosen = scenario("ofan", k=32)
    _, plan = planned(chosen, 0)
    with pytest.raises(
        PlanError,
        match=r"edge0_0: (table routes holds 256 entries, 527 are needed|register pointers)",
    ):
        reconcile(Installed(), plan)


@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
@pytest.mark.parametrize("switch", [0, 40, 70], ids=["edge", "agg", "core"])
def test_ports_are_counted_without_making_them(policy: str, switch: int) -> None:
    _, plan = planned(scenario(policy, k=8), switch)
    assert plan.port_count == len(plan.ports)


def test_plans_of_a_switch_are_equal_where_its_part_of_the_fabric_is() -> None:
    chosen = scenario("ofan")
    planner = Planner(chosen, pipeline("ofan"))
    whole, cut = (
        forwarding(chosen.tree, LinkState.without(chosen.tree, failed), chosen.scheme, chosen.seed)
        for failed in (frozenset[int](), frozenset({0}))
    )
    assert [planner.plan(whole, switch) == planner.plan(cut, switch) for switch in range(20)] == [
        False
    ] * 8 + [True] * 12
    assert planner.plan(whole, 1) != planner.plan(whole, 2)
