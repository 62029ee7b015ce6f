"""htsim's topology files: the fabrics that they describe, and errors with their place."""

from pathlib import Path

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric
from fattree.files.topo_file import fabric_of
from fattree.texts.experiment_file import load_experiment

THREE = """\
# Two pods of two edges, twice as much below an edge as above it.
Nodes 16
Tiers 3
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 500
Oversubscribed 1

tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 600
Switch_Latency_ns 0
Oversubscribed 2
Bundle 2

Tier 2
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 1000
"""
TWO = """\
Nodes 24
Tiers 2
Podsize 24
Tier 0
Downlink_speed_Gbps 400
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Oversubscribed 2
Tier 1
Downlink_speed_Gbps 800
Radix_Down 3
Downlink_Latency_ns 2000
"""


def test_three_tiers_with_bundles_become_counts() -> None:
    tree = Fabric.model_validate(fabric_of(THREE, "x.topo")).tree
    assert (tree.hosts, tree.edges, tree.aggs, tree.cores) == (16, 4, 4, 4)
    assert (tree.edge_agg_links, tree.edge_uplinks, tree.agg_uplinks) == (2, 4, 2)


def test_two_tiers_are_a_leaf_spine_with_rates_of_its_own() -> None:
    fabric = Fabric.model_validate(fabric_of(TWO, "x.topo"))
    assert (fabric.tree.edges, fabric.tree.aggs, fabric.tree.cores) == (3, 2, 0)
    assert (fabric.rate_gbps, fabric.edge_agg_gbps, fabric.edge_agg_latency_ns) == (400, 800, 2000)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Nodes 24", "Nodes x", "x.topo:1: expected a word and a number"),
        ("Nodes 24", "Hosts 24", "x.topo:1: expected Nodes$"),
        ("Tiers 2", "Levels 2", "x.topo:2: unknown word Levels"),
        ("Nodes 24", "Nodes 20", "x.topo: Podsize 20 is no multiple of Radix_Down of tier 0 8"),
        ("Radix_Down 3", "Radix_Down 4", "Radix_Down of tier 1 is 4, but the other numbers make"),
        ("Oversubscribed 2", "Oversubscribed 1", "tier 0: Oversubscribed 1 is not what 3200"),
        ("Oversubscribed 2", "Queue_Up 9", r"x.topo:9: unknown word Queue_Up \(say fabric.queue"),
        ("Oversubscribed 2", "Switch_Latency_ns 5", "tier 0: switches take no time here"),
        ("Tiers 2", "Tiers 4", "expected Tiers 2 or 3"),
        ("Tier 1\n", "Tier 0\n", "x.topo:10: tier 0 a second time"),
        ("Downlink_Latency_ns 2000\n", "", "tier 1 needs downlink_latency_ns"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(old: str, new: str, problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        fabric_of(TWO.replace(old, new), "x.topo")


def test_an_experiment_names_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "small.topo").write_text(TWO)
    file = tmp_path / "x.toml"
    file.write_text('[fabric]\ntopology = "small.topo"\n')
    (scenario,) = load_experiment(file).scenarios()
    assert (scenario.tree.hosts, scenario.tree.label) == (24, "3 edges of 8 hosts, 2 aggs")

    # The settings that a run writes down are read without the file.
    (tmp_path / "small.topo").unlink()
    assert type(scenario).model_validate_json(scenario.model_dump_json()) == scenario


def test_what_the_file_says_is_not_said_again(tmp_path: Path) -> None:
    (tmp_path / "small.topo").write_text(TWO)
    file = tmp_path / "x.toml"
    file.write_text('[fabric]\ntopology = "small.topo"\nrate_gbps = 100\n')
    with pytest.raises(ExperimentError, match=r"remove fabric\.rate_gbps"):
        load_experiment(file)
