"""Simple RR and Switch Pkt: a pointer per next-hop group (and class), for any destination."""

from fattree.policies import RESHUFFLE_WRAPS
from sim.kernels.jit import at, inlined
from sim.kernels.lb import rotation
from sim.kernels.lb.rotation import step
from sim.kernels.lb.schedules import draw, position, schedule
from sim.kernels.state import DATA

__all__ = ["reshuffled_uplink", "uplink"]


@inlined
def uplink(world, routes, switch, group, kind):
    """Return the uplink at the pointer and advance it; classes share that of data, if any share."""
    owner = DATA if world.constants.is_shared else kind
    return rotation.uplink(world, routes, switch, group=group, kind=owner)


@inlined
def reshuffled_uplink(world, routes, switch, group):
    """Return the uplink at the pointer over one of 16 orders, drawn anew after 5 wraparounds.

    One pointer serves both classes: two pointers would keep flows in step for 5 packets at a time.
    """
    pointer = at(world.switches[at(switch)].cells + 2 * group)
    cell = int(world.pointers.cells[pointer])
    if cell == 0 or world.pointers.wraps[pointer] >= RESHUFFLE_WRAPS:
        # The upper four bits of 32: 16 orders.
        world.pointers.orders[pointer] = draw(world, switch) >> 28
        world.pointers.wraps[pointer] = 0

    # A group's 16 schedules lie one behind the other and are equally long.
    first, length = schedule(routes, switch, group)
    slot = position(routes, switch, group, kind=DATA, cell=cell, length=length)
    if slot + 1 == length:
        world.pointers.wraps[pointer] += 1

    return step(
        world,
        routes,
        pointer,
        first=first + int(world.pointers.orders[pointer]) * length,
        length=length,
        slot=slot,
    )
