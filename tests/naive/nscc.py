"""Ultra Ethernet's NSCC, ACK by ACK, as docs/congestion.md describes it.

Windows are in parts of a packet, 2**16 of them, and all arithmetic is in integers, rounded down.
"""

from dataclasses import dataclass, field

PARTS = 2**16
MOST_PACKETS = 1024
US = 10**6

# The network for which the constants are: 100 Gb/s and 12 us.
REFERENCE_BPS = 100 * 10**9
REFERENCE_PS = 12 * US


@dataclass(frozen=True, slots=True)
class News:
    """The content of an ACK: the number of new arrivals, its RTT if known, its mark.

    And the outstanding packets, when the flow's first packet left, and the time.
    """

    acked: int
    rtt_ps: int | None
    marked: bool
    outstanding: int
    first_ps: int
    now_ps: int


@dataclass(slots=True)
class NsccWindow:
    """NSCC's window over a path with a zero-load RTT of `base_ps`, packets `gap_ps` apart."""

    rate_bps: int
    network_ps: int
    base_ps: int
    gap_ps: int
    trims: bool = False
    window: int = field(init=False)
    largest: int = field(init=False)
    scale: int = field(init=False)
    mean_ps: int = 0
    # Increases that are owed, and the packets since they were paid.
    owed: int = 0
    waiting: int = 0
    paid_ps: int = 0
    cut_ps: int = 0
    clear: int = 0
    is_fast: bool = False
    # QuickAdapt's period: its end and the arrivals in it; and the arrivals to ignore after it.
    period_ends_ps: int = 0
    achieved: int = 0
    to_ignore: int = 0
    ignored: int = 0
    was_trimmed: bool = False

    def __post_init__(self) -> None:
        one_and_a_half = 3 * self.base_ps * PARTS // (2 * self.gap_ps)
        self.largest = min(max(one_and_a_half, PARTS), MOST_PACKETS * PARTS)
        self.window = self.largest
        product = self.rate_bps * self.network_ps * PARTS
        self.scale = limited(product // (REFERENCE_BPS * REFERENCE_PS))

    @property
    def target_ps(self) -> int:
        """Return the target queueing delay: the network's zero-load RTT; with trimming, 3/4."""
        return self.network_ps * 3 // 4 if self.trims else self.network_ps

    def reordering(self) -> int:
        """Return how many packets above a hole make it a loss: 1.5 windows, 5 packets or more."""
        return max(min(self.window + self.window // 2, self.largest) // PARTS, 5)

    def allows(self, outstanding: int) -> bool:
        return (outstanding + 1) * PARTS <= self.window

    def on_ack(self, news: News) -> None:
        self.waiting += news.acked
        self.achieved += news.acked
        self.ignored += news.acked

        delay_ps = self.mean_ps
        if news.rtt_ps is not None:
            delay_ps = max(0, news.rtt_ps - self.base_ps)
            self.learn(delay_ps, news.marked)

        if self.is_settled_quickly(news, delay_ps):
            self.owed = self.waiting = 0
            return

        match news.marked, delay_ps >= self.target_ps:
            case False, False:
                self.increase(news.acked, delay_ps)
            case False, True:
                self.owed += news.acked * limited(5 * self.scale)
            case True, True:
                self.decrease(news.now_ps)
            case True, False:
                pass

        self.pay(news)

    def learn(self, delay_ps: int, marked: bool) -> None:
        sample_ps = delay_ps
        if delay_ps > self.target_ps and not marked:
            sample_ps = self.base_ps // 4
        self.mean_ps += (sample_ps - self.mean_ps) // 80

    def is_settled_quickly(self, news: News, delay_ps: int) -> bool:
        """QuickAdapt, once a period at most."""
        if news.marked and self.ignored < self.to_ignore:
            return True
        if news.now_ps <= self.period_ends_ps:
            return False

        arrived, is_first = self.achieved, self.period_ends_ps == 0
        self.period_ends_ps = news.now_ps + self.base_ps + self.target_ps
        self.achieved = 0
        is_long = self.was_trimmed or delay_ps > 4 * self.target_ps
        if is_first or not is_long or arrived * PARTS >= self.largest // 8:
            return False

        self.was_trimmed = False
        self.window = max(1, arrived) * PARTS
        self.to_ignore, self.ignored = news.outstanding, 0
        return True

    def increase(self, acked: int, delay_ps: int) -> None:
        """Fast after a window without any delay, else in proportion to the distance from the
        target.
        """
        if delay_ps < US:
            self.clear += acked
            self.is_fast = self.is_fast or self.clear * PARTS > self.window
        else:
            self.clear = 0
            self.is_fast = False

        if self.is_fast:
            self.window += acked * limited(self.scale // 4)
        else:
            share = limited(4 * (self.target_ps - delay_ps) * PARTS // REFERENCE_PS)
            self.owed += acked * limited(self.scale * share // PARTS)

    def decrease(self, now_ps: int) -> None:
        self.clear = 0
        self.is_fast = False
        if self.mean_ps > self.target_ps and now_ps - self.cut_ps > self.base_ps:
            excess = (self.mean_ps - self.target_ps) * PARTS // self.mean_ps
            kept = self.window - min(self.window * 4 * excess // (5 * PARTS), self.window // 2)
            self.window = max(kept, PARTS)
            self.cut_ps = now_ps

    def pay(self, news: News) -> None:
        self.window = min(self.window, self.largest)
        since_ps = news.now_ps - max(self.paid_ps, news.first_ps)
        if since_ps < self.network_ps and self.waiting <= 8:
            return

        self.window += self.owed * PARTS // self.window
        if since_ps >= self.network_ps:
            self.window += limited(3 * self.scale // 20)
            self.paid_ps = news.now_ps
        self.window = min(self.window, self.largest)
        self.owed = self.waiting = 0

    def on_late_hole(self, now_ps: int) -> None:
        pass

    def on_spurious(self) -> None:
        pass

    def on_timeout(self, now_ps: int) -> None:
        pass

    def on_nack(self, acked: int, outstanding: int, now_ps: int) -> None:
        """A queue that trims counts as long as the network's zero-load RTT."""
        self.learn(self.network_ps, True)
        self.waiting += acked
        self.achieved += acked
        self.ignored += acked + 1
        self.was_trimmed = True
        nothing = News(
            acked=0, rtt_ps=None, marked=True, outstanding=outstanding, first_ps=0, now_ps=now_ps
        )
        if self.is_settled_quickly(nothing, 0):
            self.owed = self.waiting = 0
        else:
            self.on_timed_out()

    def on_timed_out(self) -> None:
        self.window = max(self.window - PARTS, PARTS)


def limited(parts: int) -> int:
    """Return an increase, MOST_PACKETS at most."""
    return min(parts, MOST_PACKETS * PARTS)
