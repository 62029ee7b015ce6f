"""Swift's window, alone, as patient as Lazy TCP, or fed with the median of recent delays (MSwift).

Rules and constants are Swift's (2020), MSwift's and LTCP's; the paper's appendix H scales them to
800 Gb/s (load balancers, "Transport"). The three differ by two of the rules' numbers: how many
late holes in a row halve the window, and of how many delays at most the median is taken.

Windows are packets times 2**16 and delays integer nanoseconds: no floating point, so that all
networks agree.
"""

from fattree.units import PS_PER_NS
from hostagent.transports.parts import part
from hostagent.transports.state import PSN_WINDOW

ONE = 1 << 16


@part
def start(sender, rules, hops):
    """Give a flow its path's target delay, and that target's worth of packets as its window."""
    # Appendix H: "proportional to the number of hops", "the initial congestion window is set to
    # this target". A window beyond PSN_WINDOW would never fill, as SACK sends no more.
    sender.target_ps = rules.target_ps * hops // rules.longest_path
    sender.window = min(max(sender.target_ps * ONE // sender.gap_ps, ONE), PSN_WINDOW * ONE)


@part
def on_ack(sender, rules, packets, delay_ps, now_ps):
    """Grow by a packet a round trip below the target, else cut by 0.8 of the excess's share."""
    acked = sender.acked - sender.counted
    sender.counted = sender.acked
    # Packets from before the last cut do not show its effect. Half a window of samples needs half a
    # round trip more than the cut's own to show its effect: the median would cut a second time for
    # one cause, and a window that grows by a packet a round trip would not recover.
    if delay_ps >= 0 and now_ps - delay_ps < sender.decreased_ps:
        return

    if delay_ps >= 0:
        packets[sender.samples & (len(packets) - 1)].delay_ns = delay_ps // PS_PER_NS
        sender.samples += 1

    if sender.samples == 0:
        return

    delay_ns = median_ns(sender, rules, packets)
    target_ns = sender.target_ps // PS_PER_NS

    # Swift's algorithm 1 with ai = 1 and beta = 4/5; multiplied out the products stay below 2**60.
    if delay_ns < target_ns:
        sender.window = min(sender.window + acked * ONE * ONE // sender.window, PSN_WINDOW * ONE)
    else:
        cut(sender, sender.window * 4 * (delay_ns - target_ns) // (5 * delay_ns), now_ps)


@part
def cut(sender, amount, now_ps):
    """Shrink the window by `amount`, half of it at most, and no more than once a round trip."""
    if now_ps - sender.decreased_ps < sender.srtt_ps:
        return

    sender.window = max(sender.window - min(amount, sender.window >> 1), ONE)
    sender.decreased_ps = now_ps


@part
def on_late_hole(sender, rules, now_ps):
    """Halve the window at the fifth late hole in a row (Lazy TCP), in plain Swift at any."""
    sender.late_holes += 1
    if sender.late_holes >= rules.late_holes:
        sender.late_holes = 0
        cut(sender, sender.window >> 1, now_ps)


@part
def median_ns(sender, rules, packets):
    """Return the median of the last max(window / 2, 1) delays, in ns; without MSwift the last.

    Of an even number it is the mean of the middle two. The search starts at the last median and
    moves one value at a time: few steps, as one sample changes few ranks.
    """
    # `window >> 17` is half the window in packets, half a round trip of samples. A median, because
    # under spraying one slow path among many must not set the rate (MSwift).
    count = min(max(sender.window >> 17, 1), sender.samples, len(packets), rules.most_delays)
    rank = (count - 1) // 2
    value = sender.median_ns
    below, upto, lower, upper = ranks(sender, packets, count, value)

    while rank < below or rank >= upto:
        value = lower if rank < below else upper
        below, upto, lower, upper = ranks(sender, packets, count, value)

    sender.median_ns = value
    return value if count // 2 < upto else (value + upper) // 2


@part
def ranks(sender, packets, count, value):
    """Return how many of the last delays are below and up to a value, and its neighbours."""
    # No delay is below 0 or, as an int32, as large as 2**40.
    below = 0
    upto = 0
    lower = -1
    upper = 1 << 40

    for sample in range(sender.samples - count, sender.samples):
        delay_ns = int(packets[sample & (len(packets) - 1)].delay_ns)
        if delay_ns < value:
            below += 1
            lower = max(lower, delay_ns)
        elif delay_ns > value:
            upper = min(upper, delay_ns)

        if delay_ns <= value:
            upto += 1

    return below, upto, lower, upper
