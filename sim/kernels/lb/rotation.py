"""Ofan: one pointer per (destination edge or pod, class) walks the destination's schedule."""

from sim.kernels.jit import at, inlined
from sim.kernels.lb.adaptive import shortest
from sim.kernels.lb.schedules import position, schedule


@inlined
def uplink(world, routes, switch, group, kind):
    """Return the uplink at the pointer and advance it."""
    # Two cells a group, for both packet classes: ACKs are a sixty-fifth of a data packet's size,
    # so in a rotation with them a port could get nothing but ACKs (section 7, quantised sizes).
    first, length = schedule(routes, switch, group)
    pointer = at(world.switches[at(switch)].cells + 2 * group + kind)
    cell = int(world.pointers.cells[pointer])

    return step(
        world,
        routes,
        pointer,
        first=first,
        length=length,
        slot=position(routes, switch, group, kind=kind, cell=cell, length=length),
    )


@inlined
def step(world, routes, pointer, first, length, slot):
    """Return a slot's uplink and move the pointer behind it, wrapping at the schedule's end."""
    # A cell is the next slot plus 1: 0 means unused, as in a P4 register that was never written.
    world.pointers.cells[pointer] = 1 if slot + 1 == length else slot + 2
    return int(routes.slots[at(first + slot)])


@inlined
def uplink_from_shortest(world, routes, switch, group, kind, now_ps):
    """Return the uplink at the pointer; the first packet's is the shortest queue.

    The pointer starts there (appendix F, "Implementation variants").
    """
    first, length = schedule(routes, switch, group)
    pointer = at(world.switches[at(switch)].cells + 2 * group + kind)
    cell = int(world.pointers.cells[pointer])

    if cell > 0:
        return step(
            world,
            routes,
            pointer,
            first=first,
            length=length,
            slot=position(routes, switch, group, kind=kind, cell=cell, length=length),
        )

    chosen = shortest(
        world,
        routes,
        switch,
        group=group,
        now_ps=now_ps,
        is_weighted=False,
    )

    # Only uplinks with a weight are compared, so the shortest is in the schedule; where the weight
    # repeats it, its first place will do.
    slot = 0
    while routes.slots[at(first + slot)] != chosen:
        slot += 1

    return step(world, routes, pointer, first=first, length=length, slot=slot)
