"""Fabrics by their counts: wiring, names, addresses, refused counts, and results of theory."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fattree.demand.flows import path_links
from fattree.demand.traffic import check_collective, flows, gaps
from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.routes.bounds import bound_ps
from fattree.routes.rates import rho_max
from fattree.routes.southbound import Bundles, has_choice, host_ports
from fattree.routes.wecmp import LinkState
from fattree.shape import addressing
from fattree.shape.topology import FatTree, Level, Speeds, Tier, refuse_unaddressable
from fattree.texts.experiment_file import parse_experiment


@st.composite
def fabrics(draw: st.DrawFn) -> FatTree:
    pods = draw(st.integers(1, 4))
    planes = draw(st.sampled_from((1, 1, 2, 3)))
    return FatTree(
        pods=pods * planes,
        planes=planes,
        edges_per_pod=draw(st.integers(1, 4)),
        hosts_per_edge=draw(st.integers(1, 5)),
        aggs_per_pod=draw(st.integers(1, 4)),
        cores_per_agg=draw(st.integers(int(pods > 1), 3)),
        edge_agg_links=draw(st.integers(1, 3)),
        agg_core_links=draw(st.integers(1, 3)),
    )


def test_k_is_short_for_its_counts() -> None:
    tree = FatTree(6)
    assert (tree.pods, tree.edges_per_pod, tree.hosts_per_edge, tree.aggs_per_pod) == (6, 3, 3, 3)
    assert (tree.hosts, tree.cores, tree.label) == (54, 9, "k = 6")


@given(fabrics())
def test_links_join_ports_that_point_at_each_other(tree: FatTree) -> None:
    ends = [tree.link_ends(link) for link in range(tree.links)]
    for link, (lower, upper) in enumerate(ends):
        assert (tree.neighbour(*lower), tree.neighbour(*upper)) == (upper, lower)
        assert tree.link_at(*lower) == tree.link_at(*upper) == link
        assert tree.level_of(*lower) == tree.level_of(*upper) == int(tree.tier(upper.switch))
    wired = {end for pair in ends for end in pair} | {tree.access(h) for h in range(tree.hosts)}
    assert len(wired) == 2 * tree.links + tree.hosts == tree.first_port(tree.switches)
    assert wired == {(s, port) for s in range(tree.switches) for port in tree.ports(s)}


@given(fabrics())
def test_names_and_addresses_are_one_to_one(tree: FatTree) -> None:
    for link in range(tree.links):
        assert addressing.link_named(tree, addressing.link_name(tree, link)) == link
    for switch in range(tree.switches):
        assert addressing.switch_named(tree, addressing.switch_name(tree, switch)) == switch
    hosts = [addressing.host_ip(tree, host) for host in range(tree.hosts)]
    above = range(tree.first_agg, tree.switches)
    ways = [address for switch in above for address in addressing.waypoint_addresses(tree, switch)]
    edges = [addressing.switch_ip(tree, edge) for edge in range(tree.edges)]
    assert len({*hosts, *ways, *edges}) == tree.hosts + len(ways) + tree.edges


@pytest.mark.parametrize(
    ("fabric", "problem"),
    [
        ("k = 4\npods = 2", "x:3: fabric.pods and k = 4: give counts or k, not both"),
        ("edges_per_pod = 2", "x:2: fabric.edges_per_pod = 2 needs fabric.hosts_per_edge"),
        ("k = 0", "x:2: fabric.k = 0 needs fabric.edges_per_pod"),
        (
            "pods = 2\nedges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2",
            "x:2: fabric.pods = 2 needs fabric.cores_per_agg",
        ),
        (
            "edges_per_pod = 2\nhosts_per_edge = 254\naggs_per_pod = 2",
            "x:3: fabric.hosts_per_edge = 254: must be less than or equal to 253",
        ),
        (
            "edges_per_pod = 200\nhosts_per_edge = 2\naggs_per_pod = 60",
            "x:2: fabric: 260 edges and links to aggs in a pod are more than the 256",
        ),
        (
            "k = 64\nplanes = 4",
            "x:2: fabric: 256 pods are more than the 255 that can be told apart",
        ),
        (
            "edges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2\npods = 25\n"
            "cores_per_agg = 2\nplanes = 10",
            "x:5: fabric: 260 pods and planes of cores are more than the 256",
        ),
        ('plane_use = "keep"', "x:2: fabric.plane_use needs fabric.planes"),
        (
            "edges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2\nagg_core_links = 3",
            "x:5: fabric.agg_core_links needs fabric.cores_per_agg: there are no cores",
        ),
        (
            "edges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2\nagg_core_gbps = 3",
            "x:5: fabric.agg_core_gbps needs fabric.cores_per_agg",
        ),
        (
            "edges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2\ncores_per_agg = 2",
            "x:5: fabric.cores_per_agg = 2 needs fabric.pods of at least 2",
        ),
        (
            "pods = 1\nplanes = 2\nedges_per_pod = 2\nhosts_per_edge = 2\naggs_per_pod = 2\n"
            "cores_per_agg = 2",
            "x:7: fabric.cores_per_agg = 2 needs fabric.pods of at least 2",
        ),
        ("edges_per_pod = 1\nhosts_per_edge = 1\naggs_per_pod = 1", "one host has nobody"),
        (
            "edges_per_pod = 1\nhosts_per_edge = 1\naggs_per_pod = 1\nplanes = 2",
            "one host has nobody",
        ),
    ],
)
def test_what_is_no_fabric_is_told_with_its_line(fabric: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_experiment(f"[fabric]\n{fabric}\n", "x")
    assert problem in str(refused.value)


def test_more_ports_than_a_switch_has_are_refused() -> None:
    wide = FatTree(pods=1, edges_per_pod=170, hosts_per_edge=2, aggs_per_pod=2, edge_agg_links=3)
    with pytest.raises(ValueError, match="510 ports of a switch are more than the 509"):
        refuse_unaddressable(wide)


def planes(use: str, **collective: object) -> Scenario:
    counts = {"planes": 4, "edges_per_pod": 2, "hosts_per_edge": 2, "aggs_per_pod": 1}
    fabric = Fabric.model_validate({**counts, "plane_use": use})
    return Scenario(fabric=fabric, collective=Collective.model_validate(collective))


def test_a_ring_is_one_on_every_rail_that_waits_for_nobody_elses() -> None:
    sprayed = flows(planes("spray", matrix="ring", message_bytes=10 * 4096, steps=2))
    assert (len(sprayed), set(sprayed.packets.tolist())) == (2 * 4 * 4, {3})
    waiting = np.repeat(np.arange(len(sprayed)), np.diff(sprayed.after_offset))
    assert (sprayed.source[waiting] // 4 == sprayed.source[sprayed.after] // 4).all()


def test_messages_that_keep_to_a_plane_take_them_in_turn() -> None:
    sprayed = flows(planes("keep", matrix="all_to_all", message_bytes=4096))
    used = np.bincount(sprayed.source // 4, minlength=4)
    assert used.tolist() == [3, 3, 3, 3]
    assert (sprayed.source // 4 == sprayed.destination // 4).all()


def test_planes_of_a_leaf_spine_have_no_pods_to_send_between() -> None:
    with pytest.raises(TrafficError, match="needs pods"):
        check_collective(planes("spray", matrix="inter_pod_permutation"))


@given(fabrics())
def test_cores_join_all_pods_of_their_plane_and_no_other(tree: FatTree) -> None:
    plane_of_pod = [pod // (tree.pods // tree.planes) for pod in range(tree.pods)]
    for core in range(tree.first_core, tree.switches):
        aggs = [end.switch for port in tree.ports(core) if (end := tree.neighbour(core, port))]
        pods = [tree.position(agg)[0] for agg in aggs]
        assert len({plane_of_pod[pod] for pod in pods}) == 1
        assert len(set(pods)) == tree.pods // tree.planes
        assert len({tree.position(agg)[1] for agg in aggs}) == 1


def test_an_inter_pod_permutation_needs_pods() -> None:
    fabric = Fabric(edges_per_pod=2, hosts_per_edge=2, aggs_per_pod=1)
    with pytest.raises(TrafficError, match="needs pods: 2 edges of 2 hosts, 1 aggs has one"):
        flows(Scenario(fabric=fabric, collective=Collective(matrix="inter_pod_permutation")))


@given(fabrics(), st.integers(0, 100), st.integers(1, 4), st.integers(1, 4))
def test_an_inter_pod_permutation_loads_links_by_the_oversubscription(
    tree: FatTree, seed: int, edge_agg: int, agg_core: int
) -> None:
    """All hosts of an edge or pod leave it: load = capacity below / capacity above, exactly."""
    assume(tree.pods_per_plane > 1)
    scenario = Scenario(
        seed=seed,
        fabric=Fabric(
            planes=tree.planes if tree.planes > 1 else None,
            pods=tree.pods_per_plane,
            edges_per_pod=tree.edges_per_pod,
            hosts_per_edge=tree.hosts_per_edge,
            aggs_per_pod=tree.aggs_per_pod,
            cores_per_agg=tree.cores_per_agg,
            edge_agg_links=tree.edge_agg_links,
            agg_core_links=tree.agg_core_links,
        ),
        collective=Collective(matrix="inter_pod_permutation", message_bytes=1),
    )
    speeds = Speeds(Fraction(edge_agg, 2), Fraction(agg_core, 2))
    edge = Fraction(tree.hosts_per_edge) / (tree.edge_uplinks * speeds.edge_agg)
    pod = Fraction(tree.hosts_per_pod) / (tree.aggs_per_pod * tree.agg_uplinks * speeds.agg_core)
    sprayed = rho_max(tree, LinkState.without(tree), flows(scenario), speeds)
    assert sprayed == 1 / max(edge, pod, Fraction(1))


def test_the_bound_of_an_oversubscribed_fabric_is_that_of_its_uplinks() -> None:
    # 4 hosts behind 2 uplinks: each sends every second slot, with room for the ACKs there.
    counts = {"edges_per_pod": 2, "hosts_per_edge": 4, "aggs_per_pod": 2, "cores_per_agg": 2}
    scenario = Scenario(
        fabric=Fabric.model_validate({"pods": 2, **counts}),
        collective=Collective(matrix="inter_pod_permutation"),
    )
    sprayed = flows(scenario)
    paced = gaps(
        scenario, sprayed, rho_max(scenario.tree, LinkState.without(scenario.tree), sprayed)
    )
    assert set(paced.tolist()) == {2 * (scenario.slot_ps + scenario.ack_slot_ps)}
    assert bound_ps(scenario, sprayed, paced) >= 255 * int(paced[0]) + scenario.zero_load_rtt_ps


def test_times_follow_from_levels() -> None:
    fabric = Fabric(
        k=4, rate_gbps=400, edge_agg_gbps=800, agg_core_gbps=200, agg_core_latency_ns=3000
    )
    scenario = Scenario(fabric=fabric)
    assert [scenario.tx_ps(1000, level) for level in Level] == [20_000, 10_000, 40_000]
    assert scenario.latencies_ps == (500_000, 500_000, 3_000_000)
    assert scenario.path_ps(6, 1000) == 2 * (4_000_000 + 70_000)


def test_a_leaf_spine_has_paths_of_four_links_at_most() -> None:
    scenario = Scenario(fabric=Fabric(edges_per_pod=3, hosts_per_edge=2, aggs_per_pod=2))
    assert set(path_links(scenario.tree, flows(scenario)).tolist()) <= {2, 4}
    assert scenario.tree.most_hops == 4


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.integers(0, 20))
def test_hosts_are_dealt_out_to_the_links_that_are_up(up: list[bool], number: int) -> None:
    member = Bundles.of(np.array([up])).member(0, number)
    alive = [index for index, is_up in enumerate(up) if is_up] or list(range(len(up)))
    assert member == alive[number % len(alive)]


@settings(max_examples=30)
@given(fabrics())
def test_ports_over_parallel_links_lead_down_to_their_hosts(tree: FatTree) -> None:
    # Judged by the wiring: whoever is behind the port is the host's edge, or an agg of its pod.
    links = LinkState.without(tree)
    for switch in filter(partial(has_choice, tree), range(tree.first_agg, tree.switches)):
        for host, port in host_ports(tree, links, switch).items():
            below = tree.neighbour(switch, port)
            assert below is not None
            if tree.tier(switch) is Tier.AGG:
                assert below.switch == tree.edge_of_host(host)
            else:
                assert tree.position(below.switch)[0] == tree.pod_of_host(host)
