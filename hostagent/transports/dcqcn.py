"""DCQCN's rate: a sender slows down after marks, and comes back in three stages.

The rule is that of Zhu et al. (SIGCOMM 2015): a CNP sets the target to the rate of now and cuts the
rate by half of alpha; without CNPs alpha decays. A timer and a counter of bytes each let the rate
come back, half of the way to its target at a time: at first to the old rate (fast recovery), later
to a growing target (additive, then hyper increase). Numbers: `docs/lossless.md`.

An ACK with a mark is the CNP; a flow heeds one CNP in 50 us. Rates are shares of the flow's
pace, and alpha a share of 1, all times 2**16; divisions round down, so that all networks agree.
Timers are checked when a packet leaves and when an ACK comes.
"""

from fattree.units import PS_PER_US
from hostagent.transports.parts import part

ONE = 1 << 16

# The publication's: the least time between CNPs, and the times after which alpha decays and the
# rate comes back. G is its 1/256, as a shift; after so many stages targets begin to grow.
CNP_PS = 50 * PS_PER_US
ALPHA_PS = 55 * PS_PER_US
TIMER_PS = 55 * PS_PER_US
GAIN = 8
STAGES = 5
# The publication has 40 Mbit/s on links of 40 Gbit/s; the hyper increase is ten times as much in
# the public simulator of HPCC. Its least rate is a thousandth of the fastest link's, too.
ADDITIVE = ONE // 1000
HYPER = ONE // 100
LEAST = ONE // 1000


@part
def start(sender):
    """Begin at the full rate, with the largest alpha."""
    sender.rate = ONE
    sender.target_rate = ONE
    sender.alpha = ONE


@part
def slowed(sender, gap_ps):
    """Return the time between two packets at the flow's rate, which is `gap_ps` at the full rate.

    No product leaves int64.
    """
    return gap_ps // sender.rate * ONE + gap_ps % sender.rate * ONE // sender.rate


@part
def on_sent(sender, rules, now_ps):
    """Count a packet that leaves: so many bytes let the rate come back by one stage."""
    elapse(sender, rules, now_ps)
    sent = sender.transmissions - sender.cut_at
    if is_limited(sender) and sent % rules.counter_packets == 0:
        recover(sender, rules)


@part
def on_mark(sender, rules, now_ps):
    """Cut the rate for a CNP, unless the last CNP came shortly before."""
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


@part
def is_limited(sender):
    """Return whether the rate is, or is to be, below the full rate."""
    return sender.rate < ONE or sender.target_rate < ONE


@part
def elapse(sender, rules, now_ps):
    """Apply the timers that were due since the last check."""
    # Rounded up, so that alpha reaches 0, and the loop has an end however long a flow has slept.
    while sender.decreased_ps > 0 and sender.alpha > 0 and now_ps - sender.alpha_ps >= ALPHA_PS:
        sender.alpha -= (sender.alpha + (1 << GAIN) - 1) >> GAIN
        sender.alpha_ps += ALPHA_PS

    while is_limited(sender) and now_ps - sender.timer_ps >= TIMER_PS:
        sender.timer_ps += TIMER_PS
        sender.ticks += 1
        recover(sender, rules)


@part
def recover(sender, rules):
    """Go half of the way to the target, which grows when timer or counter has gone far enough."""
    counts = (sender.transmissions - sender.cut_at) // rules.counter_packets
    if max(sender.ticks, counts) >= STAGES:
        step = HYPER if min(sender.ticks, counts) > STAGES else ADDITIVE
        sender.target_rate = min(sender.target_rate + step, ONE)

    # Rounded up, or the rate would never be full again.
    sender.rate = (sender.target_rate + sender.rate + 1) // 2
