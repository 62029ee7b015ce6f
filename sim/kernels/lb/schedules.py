"""Groups, schedules and pointers, and a switch's random numbers: what the families share."""

from fattree.draws import Stream, component, mix
from sim.kernels.jit import at, inlined

SWITCH = int(Stream.SWITCH)


@inlined
def schedule(routes, switch, group):
    """Return where the schedule of a switch's local group begins in `slots`, and its length."""
    index = routes.group_schedule[at(routes.first_group[at(switch)] + group)]
    first = routes.schedule_offset[at(index)]
    return first, routes.schedule_offset[at(index + 1)] - first


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
    return start_or_next(
        cell, int(routes.group_start[at(routes.first_group[at(switch)] + group), at(kind)]), length
    )


@inlined
def draw(world, switch):
    """Return a switch's next random number, 32 bits."""
    # Counter-based, and a stream for each switch: what one draws depends on its own packets only,
    # so the number of threads does not matter (simulator model, "Randomness").
    node = world.switches[at(switch)]
    number = mix(world.constants.seed, component(SWITCH, switch), node.draws)
    node.draws += 1

    return number
