"""Groups, schedules and pointers, and a switch's random numbers, which the families share."""

import numpy as np

from fattree.draws import Stream, component, mix
from sim.kernels.jit import at, inlined
from sim.kernels.state import ACK

SWITCH = int(Stream.SWITCH)


@inlined
def group_of(routes, switch, group):
    """Return the record of a switch's local group."""
    return routes.group_table[at(routes.first_group[at(switch)] + group)]


@inlined
def schedule(routes, switch, group):
    """Return where the schedule of a switch's local group begins in `slots`, and its length."""
    record = group_of(routes, switch, group)
    return record.first, np.int64(record.length)


@inlined
def start_or_next(cell, start, length):
    """Return the position that a pointer's cell stands for: the start if it is unused."""
    if cell == 0:
        return start

    # New routes may have given the group a shorter schedule while the pointer stayed where it was.
    return cell - 1 if cell <= length else 0


@inlined
def position(routes, switch, group, kind, cell, length):
    """Return the position of a group's pointer of a class."""
    record = group_of(routes, switch, group)
    return start_or_next(cell, int(record.start_ack if kind == ACK else record.start_data), length)


@inlined
def draw(world, switch):
    """Return a switch's next random number, 32 bits."""
    # Counter-based, and a stream for each switch: a switch's draws depend on its own packets only,
    # so the number of threads does not matter (simulator model, "Randomness").
    node = world.switches[at(switch)]
    number = mix(world.constants.seed, component(SWITCH, switch), node.draws)
    node.draws += 1

    return number


@inlined
def skip_draw(world, switch):
    """Skip a switch's next random number."""
    world.switches[at(switch)].draws += 1
