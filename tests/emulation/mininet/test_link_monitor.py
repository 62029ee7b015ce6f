"""What netlink tells about the links of a fat-tree: changes as they come, and the truth where
messages were lost.
"""

import socket

import pytest

from controller.fabric_controller import LinkChange
from emulation.mininet.link_monitor import LinkMonitor
from emulation.mininet.switch_processes import set_link

pytestmark = pytest.mark.root
LINK, OTHER = 0, 16


@pytest.fixture
def monitor(network, tree):
    monitor = LinkMonitor(tree)
    yield monitor
    monitor.close()


def test_nothing_has_changed_at_first(monitor):
    assert monitor.down == frozenset()
    assert monitor.read() == LinkChange()


def test_a_link_that_goes_down_and_comes_back_is_told_once(monitor, tree):
    set_link(tree, LINK, False)
    assert monitor.read() == LinkChange(down=frozenset({LINK}))
    assert monitor.read() == LinkChange()
    set_link(tree, LINK, True)
    assert monitor.read() == LinkChange(up=frozenset({LINK}))


def test_what_comes_and_goes_between_two_readings_is_no_change(monitor, tree):
    for is_up in (False, True, False, True):
        set_link(tree, LINK, is_up)
    assert monitor.read() == LinkChange()


def test_links_that_are_down_before_it_listens_are_known(network, tree):
    set_link(tree, OTHER, False)
    late = LinkMonitor(tree)
    assert late.down == {OTHER}
    late.close()


def test_where_messages_are_lost_the_state_is_read_again(monitor, tree):
    monitor._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for is_up in [False, True] * 10 + [False]:
        set_link(tree, LINK, is_up)
        set_link(tree, OTHER, is_up)
    assert monitor.read() == LinkChange(down=frozenset({LINK, OTHER}))
