"""Where packets are, from counters alone: each is counted in one place."""

from dataclasses import replace

from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.counting import Reading, counted
from fattree.shape.topology import FatTree

TREE = FatTree(2)
EDGE, AGG = TREE.link_ends(0)
ZERO = [
    SwitchCounters({port: PortCounters() for port in TREE.ports(switch)}, 0)
    for switch in range(TREE.switches)
]


def look(sent: int = 0, refused: int = 0, got: int = 0) -> list[SwitchCounters]:
    """Return counters of a network in which an edge has sent to its agg."""
    switches = list(ZERO)
    up = PortCounters(packets=sent, refused=refused)
    down = PortCounters(received=got)
    for end, port in ((EDGE, up), (AGG, down)):
        was = switches[end.switch]
        switches[end.switch] = replace(was, ports={**was.ports, end.port: port})

    return switches


def lost(first: Reading, last: Reading) -> int:
    losses = counted(TREE, first, last)
    return losses.died + sum(port.lost_to_failure for port in losses.ports)


def quiet(sent: int = 0, refused: int = 0, got: int = 0) -> Reading:
    """Return a reading of a network in which nothing moves."""
    counters = look(sent, refused, got)
    return Reading(counters, counters, (0,) * TREE.switches)


def test_what_a_deleted_interface_took_with_it_is_lost() -> None:
    assert lost(quiet(), quiet(sent=10, got=9)) == 1


def test_what_the_kernel_refused_is_lost_once() -> None:
    assert lost(quiet(), quiet(sent=10, refused=2, got=8)) == 2
    assert lost(quiet(), quiet(sent=10, refused=2, got=7)) == 3


def test_a_packet_that_arrives_is_not_lost() -> None:
    assert lost(quiet(), quiet(sent=10, got=10)) == 0


def test_a_packet_that_moves_while_switches_are_asked_is_not_lost() -> None:
    # The sender was asked before it left, and the receiver after it had come.
    moving = Reading(look(sent=4, got=5), look(sent=5, got=5), (0,) * TREE.switches)
    assert lost(moving, quiet(sent=10, got=10)) == 0

    # The sender was asked after it had left, and the receiver before it had come.
    moving = Reading(look(sent=5, got=4), look(sent=5, got=5), (0,) * TREE.switches)
    assert lost(quiet(), moving) == 0
    assert lost(moving, quiet(sent=10, got=9)) == 0
    assert lost(moving, quiet(sent=10, got=8)) == 1
