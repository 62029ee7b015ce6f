"""A switch's routes as netlink has them, in a namespace of their own."""

import select
import time
from collections.abc import Iterator

import numpy as np
import pytest

from controller.kernel_routes import KernelRoutes, RouteMonitor, route_news
from emulation.errors import NetworkError
from emulation.mininet.kernel import ip_batch, own_namespace, refuse_if_unable
from fattree.shape.addressing import interface_name
from fattree.shape.topology import FatTree

pytestmark = pytest.mark.root
TREE = FatTree(4)
EDGE = 0
NEAR = [interface_name(TREE, EDGE, TREE.uplink_port(EDGE, uplink)) for uplink in (0, 1)]


@pytest.fixture
def routes() -> Iterator[KernelRoutes]:
    """Make an edge's two uplinks, and read its routes."""
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))

    with own_namespace():
        for uplink, name in enumerate(NEAR):
            ip_batch(
                [
                    f"link add name {name} type veth peer name far{uplink}",
                    f"address add 100.64.0.{2 * uplink}/31 dev {name}",
                    f"link set {name} up",
                    f"link set far{uplink} up",
                ]
            )

        kernel = KernelRoutes(TREE, EDGE)
        yield kernel
        kernel.close()


def via(uplink: int, weight: int) -> str:
    return f"nexthop via 100.64.0.{2 * uplink + 1} dev {NEAR[uplink]} weight {weight}"


def test_weights_are_those_of_bgps_routes_to_edges(routes):
    assert not routes.weights().any()
    ip_batch(
        [
            f"route add 10.1.0.0/24 proto bgp {via(0, 33)} {via(1, 66)}",
            f"route add 10.2.1.0/24 proto bgp via 100.64.0.3 dev {NEAR[1]}",
            # Of another protocol, of no edge's network, and of another length.
            f"route add 10.3.0.0/24 proto static {via(0, 1)} {via(1, 1)}",
            f"route add 10.9.0.0/24 proto bgp {via(0, 1)} {via(1, 1)}",
            f"route add 10.3.1.0/25 proto bgp {via(0, 1)} {via(1, 1)}",
        ]
    )
    expected = np.zeros((TREE.edges, 2), dtype=np.int64)
    expected[TREE.edge(1, 0)] = 33, 66
    expected[TREE.edge(2, 1)] = 0, 1
    np.testing.assert_array_equal(routes.weights(), expected)


def test_a_dead_next_hop_has_no_weight(routes):
    ip_batch(
        [f"route add 10.1.0.0/24 proto bgp {via(0, 1)} {via(1, 2)}", f"link set {NEAR[0]} down"]
    )
    limit = time.monotonic() + 5
    while routes.weights()[TREE.edge(1, 0)].tolist() != [0, 2]:
        assert time.monotonic() < limit, "the kernel has not noticed"


def test_it_is_readable_when_the_kernel_has_changed_a_route(routes):
    monitor = RouteMonitor({EDGE: route_news()})
    routes.drain()
    monitor.until_quiet(0.1)
    assert select.select([routes], [], [], 0.1)[0] == []

    ip_batch([f"route add 10.1.0.0/24 proto bgp {via(0, 1)}"])
    assert select.select([routes], [], [], 5)[0] == [routes]
    assert monitor.until_quiet(0.1).keys() == {EDGE}
    routes.drain()
    assert select.select([routes], [], [], 0.1)[0] == []
    monitor.close()
