"""RSQ, JSQ, Switch Pkt AR: a random uplink, the shortest queue, one of the lowest bin of queues."""

import numpy as np

from fattree.policies import Chooser
from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import draw, schedule
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
    # A 16-bit draw, scaled: what the P4 programs have. Weights are in the schedule's repetitions.
    first, length = schedule(routes, switch, group)
    return int(routes.slots[at(first + (((draw(world, switch) >> 16) * length) >> 16))])


@inlined
def uplinks(world, switch):
    """Return how many uplinks a switch has: rows of weights are as wide as the widest switch's."""
    node = world.switches[at(switch)]
    return np.int64(node.ports) - np.int64(node.south)


@inlined
def queue_bytes(world, switch, uplink, now_ps):
    """Return what waits at an uplink, as far as the switch knows."""
    constants = world.constants
    # An edge's and an agg's upper ports are its uplinks; cores have none and never ask.
    node = world.switches[at(switch)]
    number = at(node.first_port + node.south + uplink)
    if constants.is_stale:
        return world.ledgers[number].stale_bytes

    # Here a late occupancy would not do (see `switches.enqueue`): the choice depends on every byte.
    link = world.links[number]
    settle(world.pool, link, constants, node.tier + 1, now_ps=now_ps, counters=world.counters)
    return link.occupancy


@inlined
def shortest_uplink(world, routes, switch, group, now_ps):
    """Return the uplink with the least bytes per weight, ties at random."""
    return shortest(
        world,
        routes,
        switch,
        group=group,
        now_ps=now_ps,
        random=draw(world, switch) >> 16,
        is_weighted=True,
    )


@inlined
def shortest(world, routes, switch, group, now_ps, random, is_weighted):
    """Return the uplink with the least bytes (per weight): tie number random * ties >> 16.

    Ties count in uplink order. Fractions are compared crosswise, q_i w_j < q_j w_i, without a
    division, as P4 has none.
    """
    weights = routes.weights[at(routes.group_schedule[at(routes.first_group[at(switch)] + group)])]
    least = -1
    least_weight = 1
    ties = 0

    for uplink in range(uplinks(world, switch)):
        weight = share(weights, uplink, is_weighted)
        waiting = queue_bytes(world, switch, uplink, now_ps)
        if weight > 0 and (least < 0 or waiting * least_weight < least * weight):
            least = waiting
            least_weight = weight
            ties = 0

        if weight > 0 and waiting * least_weight == least * weight:
            ties += 1

    # A second look, rather than a list of ties: kernels create no arrays.
    tie = (random * ties) >> 16
    for uplink in range(uplinks(world, switch)):
        weight = share(weights, uplink, is_weighted)
        waiting = queue_bytes(world, switch, uplink, now_ps)
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
    """Return an uplink of the lowest bin that has one, at random in proportion to weight."""
    random = draw(world, switch) >> 16
    weights = routes.weights[at(routes.group_schedule[at(routes.first_group[at(switch)] + group)])]
    lowest = BINS
    total = 0

    for uplink in range(uplinks(world, switch)):
        reached = queue_bin(world.constants, queue_bytes(world, switch, uplink, now_ps))
        if weights[uplink] > 0 and reached < lowest:
            lowest = reached
            total = 0

        if reached == lowest:
            total += int(weights[uplink])

    # As many tickets as weight: an uplink is drawn in proportion to it.
    ticket = (random * total) >> 16
    for uplink in range(uplinks(world, switch)):
        if queue_bin(world.constants, queue_bytes(world, switch, uplink, now_ps)) != lowest:
            continue
        if ticket < weights[uplink]:
            return uplink

        ticket -= int(weights[uplink])

    return -1
