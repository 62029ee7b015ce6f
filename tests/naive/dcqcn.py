"""DCQCN's rate (Zhu et al., SIGCOMM 2015), as a share of the flow's pace in parts of 2**16."""

from dataclasses import dataclass

PARTS = 2**16
US = 1_000_000
BETWEEN_CNPS_PS, ALPHA_PS, TIMER_PS = 50 * US, 55 * US, 55 * US
COUNTER_BYTES = 10_000_000
ADDITIVE, HYPER, LEAST = PARTS // 1000, PARTS // 100, PARTS // 1000
STAGES = 5


@dataclass(slots=True)
class DcqcnRate:
    """The rate is cut by CNPs, and comes back by a timer and by packets sent."""

    counter_packets: int
    rate: int = PARTS
    target: int = PARTS
    alpha: int = PARTS
    cnp_ps: int | None = None
    alpha_ps: int = 0
    timer_ps: int = 0
    by_timer: int = 0
    packets: int = 0

    def on_mark(self, now_ps: int) -> None:
        """Take an ACK with a mark as a CNP, the first in 50 us."""
        self.catch_up(now_ps)
        if self.cnp_ps is not None and now_ps < self.cnp_ps + BETWEEN_CNPS_PS:
            return
        self.target = self.rate
        self.rate = max(LEAST, self.rate - self.rate * self.alpha // (2 * PARTS))
        self.alpha += (PARTS - self.alpha) // 256
        self.cnp_ps = self.alpha_ps = self.timer_ps = now_ps
        self.by_timer = self.packets = 0

    def on_sent(self, now_ps: int) -> None:
        """Count a packet."""
        self.catch_up(now_ps)
        self.packets += 1
        if self.packets % self.counter_packets == 0:
            self.rise()

    def catch_up(self, now_ps: int) -> None:
        """Run the timers that are due."""
        if self.cnp_ps is None:
            return
        for _ in range((now_ps - self.alpha_ps) // ALPHA_PS):
            self.alpha -= -(-self.alpha // 256)
            self.alpha_ps += ALPHA_PS
        while now_ps >= self.timer_ps + TIMER_PS and min(self.rate, self.target) < PARTS:
            self.timer_ps += TIMER_PS
            self.by_timer += 1
            self.rise()

    def rise(self) -> None:
        """Halve the distance to the target; after five stages the target grows, too."""
        if min(self.rate, self.target) == PARTS:
            return
        stages = (self.by_timer, self.packets // self.counter_packets)
        if max(stages) >= STAGES:
            self.target += HYPER if min(stages) > STAGES else ADDITIVE
            self.target = min(self.target, PARTS)
        self.rate = -(-(self.target + self.rate) // 2)

    def slowed(self, gap_ps: int) -> int:
        """Return the time between packets at this rate."""
        return gap_ps * PARTS // self.rate
