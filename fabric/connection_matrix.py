"""htsim connection matrices."""

from fabric.flows import Flows
from fabric.topology import FatTree


def read_connection_matrix(path: str, tree: FatTree, payload_bytes: int, start_unit: str) -> Flows:
    """Placeholder."""
    raise NotImplementedError
