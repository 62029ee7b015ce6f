"""Netlink's messages about the links of a fat-tree: changes as they come, and the truth where
messages were lost.
"""

import socket
import subprocess
import time

import pytest

from controller.fabric_controller import LinkChange
from controller.link_monitor import LinkMonitor
from emulation.mininet.switch_processes import set_link
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import interface_name
from fattree.shape.topology import FatTree

pytestmark = pytest.mark.root
LINK, OTHER = 0, 16
SECONDS = 10


def set_and_await(tree: FatTree, link: int, is_up: bool) -> None:
    """Set a link, and wait until the kernel shows it at both ends: it may do so a little later."""
    set_link(Scenario(fabric=Fabric(k=tree.k)), link, is_up)
    ends = [interface_name(tree, *end) for end in tree.link_ends(link)]
    late = time.monotonic() + SECONDS
    while any((_state(end) == "up") is not is_up for end in ends):
        assert time.monotonic() < late
        time.sleep(0.01)


def _state(name: str) -> str:
    return (
        subprocess.run(
            ["ip", "-j", "link", "show", name], capture_output=True, text=True, check=True
        )
        .stdout.partition('"operstate":"')[2]
        .partition('"')[0]
        .lower()
    )


@pytest.fixture
def monitor(network, tree):
    monitor = LinkMonitor(tree)
    yield monitor
    monitor.close()


def test_nothing_has_changed_at_first(monitor):
    assert monitor.down == frozenset()
    assert monitor.read() == LinkChange()


def test_a_link_that_goes_down_and_comes_back_is_told_once(monitor, tree):
    set_and_await(tree, LINK, False)
    assert monitor.read() == LinkChange(down=frozenset({LINK}))
    assert monitor.read() == LinkChange()
    set_and_await(tree, LINK, True)
    assert monitor.read() == LinkChange(up=frozenset({LINK}))


def test_what_comes_and_goes_between_two_readings_is_no_change(monitor, tree):
    for is_up in (False, True, False, True):
        set_and_await(tree, LINK, is_up)
    assert monitor.read() == LinkChange()


def test_links_that_are_down_before_it_listens_are_known(network, tree):
    set_and_await(tree, OTHER, False)
    late = LinkMonitor(tree)
    assert late.down == {OTHER}
    late.close()


def test_where_messages_are_lost_the_state_is_read_again(monitor, tree):
    monitor._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for is_up in [False, True] * 10 + [False]:
        for link in (LINK, OTHER):
            set_link(Scenario(fabric=Fabric(k=tree.k)), link, is_up)
    for link in (LINK, OTHER):
        set_and_await(tree, link, False)
    assert monitor.read() == LinkChange(down=frozenset({LINK, OTHER}))
