"""Cycles of paused ports that wait for each other, and hosts' storms: why runs cannot go on."""

from collections.abc import Iterator

import numpy as np

from fattree.routes.cycles import cycle
from fattree.shape.addressing import switch_name
from fattree.shape.topology import FatTree
from fattree.texts.storms import storm_words
from sim.kernels.events.upcoming import CLOSED, OPEN
from sim.kernels.lists import following
from sim.kernels.state import CLOCK, World
from sim.kernels.switches import PORT_MASK

# A port of a switch.
Place = tuple[int, int]


def deadlock(tree: FatTree, world: World) -> str:
    """Return a cycle of paused ports in words, after a semicolon; nothing where there is none."""
    members = cycle(waits(tree, world))
    if not members:
        return ""

    ring = " waits for ".join(
        f"{switch_name(tree, switch)} port {port}" for switch, port in (*members, members[0])
    )
    return f"; deadlock, a cycle of paused ports: {ring}"


def storm(tree: FatTree, world: World) -> str:
    """Return the hosts that have paused their links in words, after a semicolon; '' if none has."""
    now_ps = int(world.counters[CLOCK])
    gates = world.gates
    held_ps = world.ledgers.paused_ps[: len(gates)]
    held_ps = held_ps + np.where(gates.state == OPEN, 0, now_ps - gates.closed_ps)
    hosts = storm_words(
        tree,
        {
            (edge, port): int(held_ps[tree.first_port(edge) + port - 1])
            for edge in range(tree.edges if len(gates) else 0)
            for port in range(1, tree.hosts_per_edge + 1)
        },
    )
    return f"; {hosts}" if hosts else ""


def waits(tree: FatTree, world: World) -> dict[Place, list[Place]]:
    """Return which paused ports each paused port waits for.

    It waits for the buffer at the far end of its link, and that for the ports at which its packets
    are.
    """
    closed = set(np.flatnonzero(world.gates.state == CLOSED).tolist())
    places = {
        tree.first_port(switch) + port - 1: (switch, port)
        for switch in range(tree.switches)
        for port in tree.ports(switch)
    }
    return {
        places[number]: [
            places[blocking] for blocking in _blocking(tree, world, places, number, closed)
        ]
        for number in sorted(closed)
    }


def _blocking(
    tree: FatTree, world: World, places: dict[int, Place], number: int, closed: set[int]
) -> Iterator[int]:
    # A link's ends are each other's inputs. A host that pauses its link waits for no port.
    far = int(world.inputs[number])
    if far not in places:
        return

    switch, port = places[far]
    first = tree.first_port(switch)
    for output in range(first, first + len(tree.ports(switch))):
        if output in closed and port - 1 in _came_by(world, output):
            yield output


def _came_by(world: World, number: int) -> set[int]:
    """Return the ports (from 0) by which the packets have come that wait at a port."""
    link = world.links[number]
    slot, inputs = int(link.cursor), set()
    while slot != link.tail:
        inputs.add(int(world.pool.packets[slot].time_ps) & PORT_MASK)
        slot = int(following(world.pool, slot))

    return inputs
