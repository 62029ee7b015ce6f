"""The places of all parts in the page's picture, on any fabric."""

import pytest

from emulation.live.picture import picture
from fattree.shape.topology import FatTree

FABRICS = [
    FatTree(4),
    FatTree(pods=1, edges_per_pod=8, hosts_per_edge=16, aggs_per_pod=4, edge_agg_links=2),
    FatTree(pods=2, planes=2, edges_per_pod=2, hosts_per_edge=2, aggs_per_pod=3),
    FatTree(pods=3, edges_per_pod=2, hosts_per_edge=4, aggs_per_pod=2, cores_per_agg=1),
]


@pytest.mark.parametrize("tree", FABRICS, ids=lambda tree: tree.label)
def test_every_switch_has_a_place_of_its_own(tree: FatTree) -> None:
    drawn = picture(tree)
    places = [(switch["x"], switch["y"]) for switch in drawn["switches"]]
    assert len(set(places)) == tree.switches
    assert all(0 < x < drawn["width"] and 0 < y < drawn["height"] for x, y in places)
    assert len(drawn["rows"]) == (4 if tree.cores else 3)
