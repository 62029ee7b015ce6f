"""RSQ, JSQ, Switch Pkt AR: a random uplink, the shortest queue, a queue of the lowest bin."""

import numpy as np

from fattree.policies import Chooser
from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import draw, group_of, schedule, skip_draw
from sim.kernels.ports import settle

BINS = 4
RANDOM = int(Chooser.RANDOM)
SHORTEST = int(Chooser.SHORTEST)


@inlined
def uplink(world, routes, switch, group, now_ps):
    """Return the uplink that RSQ, JSQ or Switch Pkt AR chooses."""
    chooser = world.constants.chooser
    if chooser == RANDOM:
        return random_uplink(world, routes, switch, group)
    if chooser == SHORTEST:
        return shortest_uplink(world, routes, switch, group=group, now_ps=now_ps)

    return binned_uplink(world, routes, switch, group=group, now_ps=now_ps)


@inlined
def random_uplink(world, routes, switch, group):
    """Return the uplink of a random slot."""
    # A 16-bit draw, scaled, as in the P4 programs. Weights are in the schedule's repetitions.
    first, length = schedule(routes, switch, group)
    return int(routes.slots[at(first + (((draw(world, switch) >> 16) * length) >> 16))])


@inlined
def uplinks(world, switch):
    """Return how many uplinks a switch has: rows of weights are as wide as the widest switch's."""
    node = world.switches[at(switch)]
    return np.int64(node.ports) - np.int64(node.south)


@inlined
def settle_uplinks(world, switch, now_ps):
    """Bring the queues of a switch's uplinks to `now_ps`, for a choice that depends on every byte.

    A late occupancy (`sim.kernels.switches.enqueue`) would not do.
    """
    if world.constants.is_stale:
        return

    # An edge's and an agg's upper ports are its uplinks; cores have none and never ask.
    node = world.switches[at(switch)]
    level = np.int64(node.tier) + 1
    first = first_uplink(node)
    for uplink in range(uplinks(world, switch)):
        settle(world, world.links[at(first + uplink)], level, now_ps)


@inlined
def first_uplink(node):
    """Return the link that is a switch's first uplink."""
    return np.int64(node.first_port) + np.int64(node.south)


@inlined
def queue_bytes(world, number):
    """Return the bytes that wait at a link, as far as its switch knows."""
    if world.constants.is_stale:
        return world.ledgers[at(number)].stale_bytes

    return world.links[at(number)].occupancy


@inlined
def shortest_uplink(world, routes, switch, group, now_ps):
    """Return the uplink with the least bytes per weight, ties at random."""
    return shortest(world, routes, switch, group=group, now_ps=now_ps, is_weighted=True)


@inlined
def shortest(world, routes, switch, group, now_ps, is_weighted):
    """Return the uplink with the least bytes (per weight): tie number random * ties >> 16.

    Ties count in uplink order. Fractions are compared crosswise, q_i w_j < q_j w_i, without a
    division, as P4 has none.
    """
    settle_uplinks(world, switch, now_ps)
    weights = routes.weights[at(group_of(routes, switch, group).schedule)]
    first = first_uplink(world.switches[at(switch)])
    least = np.int64(-1)
    least_weight = np.int64(1)
    chosen = np.int64(-1)
    ties = np.int64(0)

    for uplink in range(uplinks(world, switch)):
        weight = share(weights, uplink, is_weighted)
        waiting = queue_bytes(world, first + uplink)
        crosswise, least_crosswise = waiting * least_weight, least * weight
        if weight > 0 and (least < 0 or crosswise < least_crosswise):
            least = waiting
            least_weight = weight
            chosen = uplink
            ties = 1
        elif weight > 0 and crosswise == least_crosswise:
            ties += 1

    # A packet takes its number whether it is needed or not, as the P4 program's does.
    if ties < 2:
        skip_draw(world, switch)
        return chosen

    # A second look, rather than a list of ties: kernels create no arrays.
    tie = ((draw(world, switch) >> 16) * ties) >> 16
    for uplink in range(uplinks(world, switch)):
        weight = share(weights, uplink, is_weighted)
        waiting = queue_bytes(world, first + uplink)
        if weight > 0 and waiting * least_weight == least * weight:
            if tie == 0:
                return uplink

            tie -= 1

    return -1


@inlined
def share(weights, uplink, is_weighted):
    """Return an uplink's weight, or 1 where only its presence counts."""
    return int(weights[uplink]) if is_weighted else min(int(weights[uplink]), 1)


@inlined
def queue_bin(constants, waiting):
    """Return how many thresholds a queue has reached."""
    reached = 1 if waiting >= constants.threshold_1 else 0
    reached += 1 if waiting >= constants.threshold_2 else 0
    return reached + (1 if waiting >= constants.threshold_3 else 0)


@inlined
def binned_uplink(world, routes, switch, group, now_ps):
    """Return an uplink of the lowest bin with any, at random in proportion to weight."""
    random = draw(world, switch) >> 16
    settle_uplinks(world, switch, now_ps)
    weights = routes.weights[at(group_of(routes, switch, group).schedule)]
    first = first_uplink(world.switches[at(switch)])
    lowest = BINS
    total = 0

    for uplink in range(uplinks(world, switch)):
        reached = queue_bin(world.constants, queue_bytes(world, first + uplink))
        if weights[uplink] > 0 and reached < lowest:
            lowest = reached
            total = 0

        if reached == lowest:
            total += int(weights[uplink])

    # As many tickets as weight: an uplink is drawn in proportion to it.
    ticket = (random * total) >> 16
    for uplink in range(uplinks(world, switch)):
        if queue_bin(world.constants, queue_bytes(world, first + uplink)) != lowest:
            continue
        if ticket < weights[uplink]:
            return uplink

        ticket -= int(weights[uplink])

    return -1
