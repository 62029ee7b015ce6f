"""Fixtures of the tests with real namespaces. All traffic stays in namespaces that a test makes."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from emulation.errors import NetworkError
from emulation.mininet.kernel import own_namespace, refuse_if_unable
from fattree.shape.topology import FatTree


@pytest.fixture
def namespace() -> Iterator[None]:
    """Run a test inside a network namespace of its own."""
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))
    with own_namespace():
        yield


@pytest.fixture
def tree() -> FatTree:
    return FatTree(4)


@pytest.fixture
def network(namespace, tree):
    """Build a fat-tree without switch processes."""
    from emulation.mininet.topology import fat_tree

    with fat_tree(tree) as network:
        yield network


@pytest.fixture
def interfaces() -> Callable[[], dict[str, str]]:
    """Return a function: name -> `ip` line of every interface in the current namespace."""

    def listing() -> dict[str, str]:
        lines = subprocess.run(
            ["ip", "-o", "link"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return {line.split(": ")[1].partition("@")[0]: line for line in lines}

    return listing
