"""Go-back-N's sender: it sends again from the first missing packet on."""

from dataclasses import dataclass

from tests.naive.transport import MOST_DOUBLINGS, Memory, Pacer, Sent, Timer
from tests.naive.wire import NEVER


@dataclass(slots=True)
class GoBackN:
    """The receiver takes packets in order and counts them; `again` are those to be sent again."""

    packets: int
    memory: Memory
    timer: Timer
    pacer: Pacer
    acked: int = 0
    backoff: int = 0
    again: range = range(0)
    returns: int = 0

    def ready_ps(self) -> int:
        if self.has_more():
            return self.pacer.due_ps
        return max(self.pacer.due_ps, self.deadline_ps())

    def has_more(self) -> bool:
        """Tell whether a packet may go without a timeout."""
        is_near = self.memory.count < self.acked + self.memory.places
        return bool(self.again) or (self.memory.count < self.packets and is_near)

    def deadline_ps(self) -> int:
        """Return when the lowest packet that is not acknowledged times out."""
        if self.acked >= self.memory.count:
            return NEVER
        wait_ps = self.timer.timeout_ps << min(self.backoff, MOST_DOUBLINGS)
        return self.memory.at(self.acked).sent_ps + wait_ps

    def send(self, label: int, now_ps: int) -> int:
        if not self.again and self.deadline_ps() <= now_ps:
            self.backoff += 1
            self.go_back()

        if self.again:
            psn, self.again = self.again[0], self.again[1:]
            self.memory.packets[psn % self.memory.places] = Sent(now_ps, label, is_resent=True)
        else:
            psn = self.memory.add(label, now_ps)
        self.pacer.sent(now_ps)
        return psn

    def asks(self, psn: int) -> bool:
        return self.memory.at(psn).is_resent or not self.has_more()

    def on_ack(self, psn: int, total: int, held: frozenset[int], marked: bool, now_ps: int) -> bool:
        if self.memory.knows(psn) and not self.memory.at(psn).is_resent:
            self.timer.sample(now_ps - self.memory.at(psn).sent_ps)
        if total > self.acked:
            for arrived in range(self.acked, total):
                self.memory.at(arrived).is_acked = True
            self.acked, self.backoff = total, 0
            self.again = range(max(total, self.again.start), max(total, self.again.stop))
        # A number beyond those in order: it was thrown away, and the next in order is missing.
        if total == self.acked and psn >= total:
            self.go_back()
        if marked:
            self.pacer.on_mark(now_ps)
        return self.acked >= self.packets

    def go_back(self) -> None:
        """Send all again that is not acknowledged."""
        self.again = range(self.acked, self.memory.count)
        self.returns += 1

    def on_nack(self, psn: int, total: int, held: frozenset[int], now_ps: int) -> bool:
        raise AssertionError("nothing is trimmed")
