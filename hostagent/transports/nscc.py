"""NSCC's window: Ultra Ethernet's sender-side congestion control (docs/congestion.md has the rule).

ECN marks and the queueing delay together decide, one ACK at a time: unmarked below the target delay
the window grows in proportion to the difference, unmarked above it grows fairly, marked above it
shrinks, and marked below it stays, as the load balancer is to move traffic first.

Windows and scales are times 2**16 and divisions round down, so that all networks agree.
"""

from fattree.units import PS_PER_US
from hostagent.transports.parts import part
from hostagent.transports.state import PSN_WINDOW

ONE = 1 << 16
# No window, and no increase in a round trip, is larger: SACK's bitmap has as many bits. Products
# stay below 2**60.
MOST = PSN_WINDOW * ONE

# The constants are for 100 Gb/s and 12 us; `rules.bdp_scale` is the network's bandwidth-delay
# product over theirs.
REFERENCE_PS = 12 * PS_PER_US
FAIR_PACKETS = 5
PROPORTIONAL_PACKETS = 4
# A shorter queueing delay counts as none.
CLEAR_PS = PS_PER_US
# Increases wait until more packets than this are acknowledged, or a round trip has passed.
ADJUST_PACKETS = 8
# QuickAdapt: beyond so many targets, when less than an eighth of the largest window has arrived.
QUICK_TARGETS = 4
QUICK_GATE = 3
# The mean delay moves by the 80th part of its difference from a sample.
MEAN_OF = 80


@part
def start(sender):
    """Open the window at its ceiling."""
    sender.window = ceiling(sender)


@part
def ceiling(sender):
    """Return the largest window: 1.5 times the packets of the path's zero-load RTT."""
    return min(max(3 * sender.base_ps * ONE // (2 * sender.gap_ps), ONE), MOST)


@part
def on_ack(sender, rules, marked, rtt_ps, now_ps):
    """Move the window for newly acknowledged packets; `rtt_ps` is negative if it is not known."""
    acked = sender.acked - sender.counted
    sender.counted = sender.acked

    if rtt_ps >= 0:
        delay_ps = max(rtt_ps - sender.base_ps, 0)
        average(sender, rules, marked, delay_ps)
    else:
        delay_ps = sender.mean_delay_ps

    if quick_adapt(sender, rules, marked, delay_ps, now_ps):
        sender.owed = 0
        sender.adjusted_acked = sender.acked
        return

    if delay_ps < rules.target_ps:
        if not marked:
            grow(sender, rules, acked, delay_ps)
    elif marked:
        shrink(sender, rules, now_ps)
    else:
        sender.owed += acked * min(FAIR_PACKETS * rules.bdp_scale, MOST)

    adjust(sender, rules, now_ps)


@part
def give_up_a_packet(sender):
    """Give up one packet of the window for a packet that has timed out, or was cut."""
    sender.window = max(sender.window - ONE, ONE)


@part
def on_nack(sender, rules, now_ps):
    """Give up one packet of the window for a cut packet, or adapt quickly.

    The mean learns the delay of a queue that trims: the network's zero-load RTT.
    """
    average(sender, rules, marked=True, delay_ps=rules.zero_load_rtt_ps)
    sender.ignored_below -= 1
    sender.is_trimmed = 1

    if quick_adapt(sender, rules, marked=True, delay_ps=0, now_ps=now_ps):
        sender.owed = 0
        sender.adjusted_acked = sender.acked
    else:
        give_up_a_packet(sender)


@part
def average(sender, rules, marked, delay_ps):
    """Feed a queueing delay into the mean."""
    # Late but unmarked: that queue is draining, so it should not count as congestion.
    is_draining = not marked and delay_ps > rules.target_ps
    sample_ps = sender.base_ps // 4 if is_draining else delay_ps
    sender.mean_delay_ps += (sample_ps - sender.mean_delay_ps) // MEAN_OF


@part
def quick_adapt(sender, rules, marked, delay_ps, now_ps):
    """Set the window to the last period's arrivals if delays are extreme, or packets cut.

    Return whether this ACK has been dealt with.
    """
    # Marks of packets that were under way at the last QuickAdapt are from the queue that caused it.
    # NACKs (`on_nack`) end the wait for these packets as ACKs do.
    if marked and sender.acked < sender.ignored_below:
        return True

    if now_ps <= sender.quick_ps:
        return False

    achieved = sender.acked - sender.quick_acked
    is_long = delay_ps > QUICK_TARGETS * rules.target_ps
    is_extreme = sender.quick_ps > 0 and (sender.is_trimmed or is_long)
    is_adapted = is_extreme and achieved * ONE < ceiling(sender) >> QUICK_GATE

    if is_adapted:
        sender.window = max(achieved, 1) * ONE
        sender.ignored_below = sender.sent - sender.trimmed
        sender.is_trimmed = 0

    sender.quick_acked = sender.acked
    sender.quick_ps = now_ps + sender.base_ps + rules.target_ps
    return is_adapted


@part
def grow(sender, rules, acked, delay_ps):
    """Increase at once if a window's worth has met no queue, else by the distance to the target."""
    sender.clear = sender.clear + acked if delay_ps < CLEAR_PS else 0
    if delay_ps < CLEAR_PS and (sender.is_clear or sender.clear * ONE > sender.window):
        sender.is_clear = 1
        sender.window += acked * min(rules.bdp_scale // 4, MOST)
        return

    sender.is_clear = 0
    left_ps = rules.target_ps - delay_ps
    share = min(PROPORTIONAL_PACKETS * left_ps * ONE // REFERENCE_PS, MOST)
    sender.owed += acked * min(rules.bdp_scale * share >> 16, MOST)


@part
def shrink(sender, rules, now_ps):
    """Cut by 0.8 of the mean's share above the target, half at most, once a zero-load RTT."""
    sender.is_clear = 0
    sender.clear = 0
    excess_ps = sender.mean_delay_ps - rules.target_ps
    if excess_ps <= 0 or now_ps - sender.decreased_ps <= sender.base_ps:
        return

    share = excess_ps * ONE // sender.mean_delay_ps
    cut = min(sender.window * 4 * share // (5 * ONE), sender.window >> 1)
    sender.window = max(sender.window - cut, ONE)
    sender.decreased_ps = now_ps


@part
def adjust(sender, rules, now_ps):
    """Pay out the increases that are owed, and a little more once a round trip."""
    largest = ceiling(sender)
    sender.window = min(sender.window, largest)
    # The first round trip begins with the first packet, whenever the flow has started.
    is_due = now_ps - max(sender.adjusted_ps, sender.first_ps) >= rules.zero_load_rtt_ps
    if not is_due and sender.acked - sender.adjusted_acked <= ADJUST_PACKETS:
        return

    sender.window += sender.owed * ONE // sender.window
    sender.owed = 0
    sender.adjusted_acked = sender.acked

    if is_due:
        sender.window += min(rules.bdp_scale * 3 // 20, MOST)
        sender.adjusted_ps = now_ps

    sender.window = min(sender.window, largest)
