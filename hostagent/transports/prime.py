"""PRIME: which uplink each tier takes, in pseudo-random turns, and which uplinks rest.

The label has two parts: the lower byte names the edge's uplink, the upper one the agg's. A tier's
uplinks are taken in turn, in a pseudo-random order of each round's own; the edge's part changes
with every packet, the agg's with every round of the edge's. Congestion gives both uplinks of the
label a penalty, the graver the more, and as many turns pass an uplink over.

Uplink i of n has the parts i, i + n, i + 2n, ..., another one in each round. Switches take the
part modulo their slots: n of them after no failure, and with other numbers all slots in turn.
"""

from numba.extending import register_jitable

from hostagent.transports.state import MOST_PENALTY, MOST_UPLINKS

EDGE, AGG = range(2)
TIERS = 2
PART_BITS = 8
PART_MASK = (1 << PART_BITS) - 1


@register_jitable
def uplinks_of(rules, tier):
    """Return how many uplinks a switch of a tier has."""
    return rules.edge_uplinks if tier == EDGE else rules.agg_uplinks


@register_jitable
def start_round(sender, rules, tier, draw):
    """Draw the order of a round: from a random uplink on, in steps of a random stride."""
    count = uplinks_of(rules, tier)
    # A stride that has no factor in common with the count reaches every uplink once.
    stride = 1 + (draw >> PART_BITS) % count
    while has_common_factor(stride, count):
        stride -= 1

    sender.part_round[tier] = (sender.part_round[tier] + 1) % ((PART_MASK + 1) // count)
    sender.part_turn[tier] = 0
    sender.part_first[tier] = draw % count
    sender.part_stride[tier] = stride


@register_jitable
def has_common_factor(left, right):
    """Tell whether two positive numbers have a divisor above 1 in common."""
    while right > 0:
        left, right = right, left % right

    return left > 1


@register_jitable
def uplink_in_turn(sender, rules, tier):
    """Return the uplink whose turn it is in a tier, and advance."""
    turn = sender.part_turn[tier]
    sender.part_turn[tier] = turn + 1
    return (sender.part_first[tier] + turn * sender.part_stride[tier]) % uplinks_of(rules, tier)


@register_jitable
def part_of(sender, rules, tier, uplink):
    """Return the part that names an uplink in this round of a tier."""
    return uplink + sender.part_round[tier] * uplinks_of(rules, tier)


@register_jitable
def rests(sender, tier, uplink):
    """Tell whether an uplink has a penalty; if so, the turn that passes it over takes 1 off."""
    at = tier * MOST_UPLINKS + uplink
    if sender.path_states[at] == 0:
        return False

    sender.path_states[at] -= 1
    return True


@register_jitable
def penalise(sender, rules, label, penalty):
    """Add to the penalties of both uplinks that a label names: either queue may be the long one."""
    for tier in range(TIERS):
        part = (label >> (tier * PART_BITS)) & PART_MASK
        at = tier * MOST_UPLINKS + part % uplinks_of(rules, tier)
        sender.path_states[at] = min(int(sender.path_states[at]) + penalty, MOST_PENALTY)
