"""One cell of the arrays that `fattree` computes for all switches and destinations at once."""

from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import destinations
from fattree.routes.wecmp import Ints, LinkState, pod_weights
from fattree.shape.topology import FatTree


def group_of(table: Forwarding, switch: int, destination: int) -> int:
    """Return the local group of a destination edge (at an edge) or pod (at an agg), or NONE."""
    edges = table.tree.edges
    if switch < edges:
        return int(table.edge_group[switch, destination])
    return int(table.agg_group[switch - edges, destination])


def group_towards(table: Forwarding, switch: int, host: int) -> int:
    """Return the local group of packets to a host that is not below the switch, or NONE."""
    columns = table.columns.edge if switch < table.tree.edges else table.columns.agg
    return group_of(table, switch, host * destinations(table.tree, columns) // table.tree.hosts)


def edge_weights(tree: FatTree, links: LinkState, source: int, destination: int) -> Ints:
    """Return the weights of the uplinks of edge `source` towards edge `destination`."""
    to_pods = pod_weights(tree, links)[source, destination // tree.edges_per_pod]
    weights: Ints = to_pods * links.edge_agg[destination]
    return weights
