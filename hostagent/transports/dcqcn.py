"""DCQCN's rate: a sender slows down where it is told of marks, and comes back in three stages.

The rule is that of Zhu et al. (SIGCOMM 2015): a CNP sets the target to the rate of now and cuts the
rate by half of alpha; without CNPs alpha decays. A timer and a counter of bytes each let the rate
come back, half of the way to its target at a time: at first to the old one (fast recovery), later
to one that grows (additive, then hyper increase). Numbers: `docs/lossless.md`.

An ACK with a mark is the CNP; of these a flow heeds one in 50 us. Rates are shares of the flow's
pace, and alpha a share of 1, all times 2**16; divisions round down, so that all networks agree.
Timers are looked at when a packet leaves and when an ACK comes.
"""

from numba.extending import register_jitable

from fattree.units import PS_PER_US

ONE = 1 << 16

# The publication's: at most one CNP in this time, and after which time alpha decays and the rate
# comes back. G is its 1/256, as a shift; after so many stages targets begin to grow.
CNP_PS = 50 * PS_PER_US
ALPHA_PS = 55 * PS_PER_US
TIMER_PS = 55 * PS_PER_US
GAIN = 8
STAGES = 5
# The publication has 40 Mbit/s on links of 40 Gbit/s; the hyper increase is ten times as much in
# the public simulator of HPCC, whose least rate is a thousandth of the fastest link's, too.
ADDITIVE = ONE // 1000
HYPER = ONE // 100
LEAST = ONE // 1000


@register_jitable
def start(sender):
    """Begin at the full rate, with the largest alpha."""
    sender.rate = ONE
    sender.target_rate = ONE
    sender.alpha = ONE


@register_jitable
def slowed(sender, gap_ps):
    """Return what lies between two packets at the flow's rate where it is `gap_ps` at the full one.

    Without a product that could leave int64.
    """
    return gap_ps // sender.rate * ONE + gap_ps % sender.rate * ONE // sender.rate


@register_jitable
def on_sent(sender, rules, now_ps):
    """Count a packet that leaves: so many bytes let the rate come back by one stage."""
    elapse(sender, rules, now_ps)
    sent = sender.transmissions - sender.cut_at
    if is_limited(sender) and sent % rules.counter_packets == 0:
        recover(sender, rules)


@register_jitable
def on_mark(sender, rules, now_ps):
    """Cut the rate for a CNP, unless the last one came shortly before."""
    elapse(sender, rules, now_ps)
    if sender.decreased_ps > 0 and now_ps - sender.decreased_ps < CNP_PS:
        return

    sender.target_rate = sender.rate
    sender.rate = max(sender.rate - (sender.rate * sender.alpha >> 17), LEAST)
    sender.alpha += (ONE - sender.alpha) >> GAIN
    sender.decreased_ps = now_ps
    sender.alpha_ps = now_ps
    sender.timer_ps = now_ps
    sender.ticks = 0
    sender.cut_at = sender.transmissions


@register_jitable
def is_limited(sender):
    """Tell whether the rate is, or is to be, below the full one."""
    return sender.rate < ONE or sender.target_rate < ONE


@register_jitable
def elapse(sender, rules, now_ps):
    """Do what timers have been due for since the last look."""
    # Rounded up, so that it reaches 0, and the loop has an end however long a flow has slept.
    while sender.decreased_ps > 0 and sender.alpha > 0 and now_ps - sender.alpha_ps >= ALPHA_PS:
        sender.alpha -= (sender.alpha + (1 << GAIN) - 1) >> GAIN
        sender.alpha_ps += ALPHA_PS

    while is_limited(sender) and now_ps - sender.timer_ps >= TIMER_PS:
        sender.timer_ps += TIMER_PS
        sender.ticks += 1
        recover(sender, rules)


@register_jitable
def recover(sender, rules):
    """Go half of the way to the target, which grows when timer or counter have gone far enough."""
    counts = (sender.transmissions - sender.cut_at) // rules.counter_packets
    if max(sender.ticks, counts) >= STAGES:
        step = HYPER if min(sender.ticks, counts) > STAGES else ADDITIVE
        sender.target_rate = min(sender.target_rate + step, ONE)

    # Rounded up, or it would never be the full rate again.
    sender.rate = (sender.target_rate + sender.rate + 1) // 2
