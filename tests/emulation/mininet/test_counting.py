"""Where packets are, from counters alone: each is counted in one place."""

from dataclasses import replace

from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.counting import Reading, counted
from fattree.topology import FatTree

TREE = FatTree(2)
EDGE, AGG = TREE.link_ends(0)
ZERO = [
    SwitchCounters({port: PortCounters() for port in TREE.ports(switch)}, 0)
    for switch in range(TREE.switches)
]


def after(sent: int, refused: int, got: int) -> list[SwitchCounters]:
    """Return counters of a network in which an edge has sent to its agg."""
    switches = list(ZERO)
    up = PortCounters(packets=sent, refused=refused)
    down = PortCounters(received=got)
    for end, port in ((EDGE, up), (AGG, down)):
        was = switches[end.switch]
        switches[end.switch] = replace(was, ports={**was.ports, end.port: port})

    return switches


def lost(sent: int, refused: int, got: int) -> int:
    found = counted(TREE, Reading(ZERO, (0,) * TREE.switches), after(sent, refused, got))
    return found.died + sum(port.lost_to_failure for port in found.ports)


def test_what_a_deleted_interface_took_with_it_is_lost() -> None:
    assert lost(sent=10, refused=0, got=9) == 1


def test_what_the_kernel_refused_is_lost_once() -> None:
    assert lost(sent=10, refused=2, got=8) == 2
    assert lost(sent=10, refused=2, got=7) == 3


def test_a_packet_that_arrives_is_not_lost() -> None:
    assert lost(sent=10, refused=0, got=10) == 0
