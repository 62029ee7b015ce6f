"""The package that chooses protobuf's back end comes before the messages that tests import.

With OFAN_TEST_SWITCH=bmv2 (`make test-bmv2`) the same tests run on BMv2's simple_switch_grpc, in a
network namespace.
"""

from collections.abc import Iterator

import pytest

import controller
from emulation.mininet.kernel import own_namespace
from tests.dataplane import bmv2_switch

assert controller


@pytest.fixture(scope="session", autouse=True)
def namespace() -> Iterator[None]:
    """Give BMv2's interfaces a network namespace of their own."""
    if not bmv2_switch.IS_WANTED:
        yield
        return
    if reason := bmv2_switch.why_not():
        pytest.skip(reason)
    with own_namespace():
        yield
