"""Selective acknowledgements: the packets of a receiver, and the sender's repetitions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.naive.nscc import News
from tests.naive.transport import MOST_DOUBLINGS, Congestion, Memory, Pacer, Sent, Timer
from tests.naive.wire import NEVER


@dataclass(slots=True)
class Sack:
    """The receiver reports its packets; the sender repeats missing packets, in rounds.

    A round resends every hole below its end that was last sent by a given time. It begins when the
    lowest hole is late by packet numbers, or has timed out. If an ACK shows that a packet was sent
    again needlessly (it comes within `base_ps`, the least RTT), late holes start no round for an
    srtt.

    Packets that a switch has cut are in no round: they go before all others, the lowest first, as
    soon as the window allows, or after a timeout without ACKs.
    """

    packets: int
    # A number, or a rule of how many packets may arrive above the lowest hole.
    threshold: int | Callable[[], int]
    base_ps: int
    memory: Memory
    timer: Timer
    pacer: Pacer
    congestion: Congestion
    acked: int = 0
    counted: int = 0
    highest: int = -1
    lowest: int = 0
    backoff: int = 0
    recover: int = 0
    patient_ps: int = 0
    round: list[int] = field(default_factory=list)
    round_before_ps: int = 0
    round_is_of_late: bool = False
    trims: bool = False
    trimmed: set[int] = field(default_factory=set)
    heard_ps: int = 0

    @property
    def outstanding(self) -> int:
        return self.memory.count - self.acked - len(self.trimmed)

    def has_trimmed(self) -> bool:
        return bool(self.trimmed) and self.congestion.allows(self.outstanding)

    def ready_ps(self) -> int:
        if self.round or self.has_trimmed() or self.has_new():
            return self.pacer.due_ps
        return max(self.pacer.due_ps, self.deadline_ps())

    def has_new(self) -> bool:
        """Tell whether a packet that was never sent may go."""
        is_left = self.memory.count < self.packets
        is_near = self.memory.count < self.lowest + self.memory.places
        return is_left and is_near and self.congestion.allows(self.outstanding)

    def deadline_ps(self) -> int:
        """Return when the lowest unacknowledged packet times out; doubled on repetition."""
        if self.lowest >= self.memory.count:
            return NEVER
        wait_ps = self.timer.timeout_ps << min(self.backoff, MOST_DOUBLINGS)
        since_ps = self.memory.at(self.lowest).sent_ps
        return (self.heard_ps if self.lowest in self.trimmed else since_ps) + wait_ps

    def send(self, label: int, now_ps: int) -> int:
        is_first = self.has_trimmed()
        if not is_first and not self.round and self.deadline_ps() <= now_ps:
            is_first = self.lowest in self.trimmed
            before_ps = now_ps - self.timer.timeout_ps
            if not is_first:
                self.begin_round(self.lowest, self.memory.count, before_ps, of_late=False)
            self.backoff += 1
            self.congestion.on_timeout(now_ps)

        if is_first:
            psn = min(self.trimmed)
            self.trimmed.remove(psn)
            # Which copy an ACK is of is known, unless one was sent again without a NACK.
            was = self.memory.at(psn)
            again = Sent(now_ps, label, was.first_label, is_resent=was.is_resent, is_again=True)
            self.memory.packets[psn % self.memory.places] = again
        elif self.round:
            psn = self.round.pop(0)
            was = self.memory.at(psn)
            # RFC 6675, NextSeg: nothing goes again that the receiver has reported.
            assert not was.is_acked
            again = Sent(now_ps, label, is_resent=True)
            if not self.round_is_of_late:
                self.memory.lost += was.lost_labels()
            elif was.label != label and not was.is_counted:
                again.first_label = was.label
            self.memory.packets[psn % self.memory.places] = again
            self.skip()
            if not self.round_is_of_late:
                self.congestion.on_timed_out()
        else:
            psn = self.memory.add(label, now_ps)
        self.pacer.sent(now_ps)
        return psn

    def probe(self, now_ps: int) -> int:
        """Send a copy of the newest packet, which is not missed; an ACK may be of either."""
        psn = self.memory.count - 1
        self.memory.at(psn).is_resent = True
        self.pacer.sent(now_ps)
        return psn

    def asks(self, psn: int) -> bool:
        packet = self.memory.at(psn)
        has_more = self.round or self.has_trimmed() or self.has_new()
        return packet.is_resent or packet.is_again or not has_more

    def end_of_late(self) -> int:
        """Return the number below which holes are late: with more than `threshold` above them.

        By a rule none is before so many packets have arrived above the lowest.
        """
        if isinstance(self.threshold, int):
            return self.highest - self.threshold

        enough = self.threshold()
        arrived_above = sum(
            self.memory.at(psn).is_acked for psn in range(self.lowest, self.memory.count)
        )
        return self.highest - enough + 1 if arrived_above >= enough else 0

    def begin_round(self, first: int, end: int, before_ps: int, of_late: bool) -> None:
        self.round = list(range(first, end))
        self.round_before_ps = before_ps
        self.round_is_of_late = of_late
        self.skip()

    def skip(self) -> None:
        """Leave out packets that have arrived meanwhile or were sent too recently."""
        while self.round:
            packet = self.memory.at(self.round[0])
            is_known = packet.is_acked or packet.is_trimmed
            is_again = self.trims and self.round_is_of_late
            is_again = is_again and (packet.is_resent or packet.is_again)
            if not is_known and not is_again and packet.sent_ps <= self.round_before_ps:
                return
            self.round.pop(0)

    def on_ack(self, psn: int, total: int, held: frozenset[int], marked: bool, now_ps: int) -> bool:
        self.heard_ps = now_ps
        for held_psn in sorted(held):
            self.note(held_psn)

        if marked:
            self.pacer.on_mark(now_ps)
        # The ACK of a resent packet may be of either copy (Karn).
        rtt_ps = None
        if self.memory.knows(psn) and not self.memory.at(psn).is_resent:
            rtt_ps = now_ps - self.memory.at(psn).sent_ps
            self.timer.sample(rtt_ps)

        packet = self.memory.at(psn)
        is_soon = now_ps - packet.sent_ps < self.base_ps
        if self.memory.knows(psn) and packet.is_resent and is_soon:
            self.patient_ps = now_ps + (self.timer.srtt_ps or 0)
            self.congestion.on_spurious()

        self.skip()

        # Each hole is late once: `recover` bounds those that have been. The window hears of the
        # lowest one only.
        first, end = max(self.lowest, self.recover), self.end_of_late()
        if first < end and not self.round and now_ps >= self.patient_ps:
            is_lowest = self.lowest >= self.recover
            self.recover = end
            self.begin_round(first, end, now_ps, of_late=True)
            if is_lowest and (self.round or not self.trims):
                self.congestion.on_late_hole(now_ps)

        self.congestion.on_ack(
            News(
                acked=self.acked - self.counted,
                rtt_ps=rtt_ps,
                marked=marked,
                outstanding=self.outstanding,
                first_ps=self.pacer.first_ps,
                now_ps=now_ps,
            )
        )
        self.counted = self.acked
        return self.acked >= self.packets

    def on_nack(self, psn: int, total: int, held: frozenset[int], now_ps: int) -> bool:
        self.heard_ps = now_ps
        self.pacer.on_mark(now_ps)
        for held_psn in sorted(held):
            self.note(held_psn)

        is_known = psn < self.lowest or self.memory.at(psn).is_acked or psn in self.trimmed
        if not is_known:
            self.trimmed.add(psn)
            self.memory.at(psn).is_trimmed = True

        self.skip()
        if not is_known:
            self.congestion.on_nack(self.acked - self.counted, self.outstanding, now_ps)
            self.counted = self.acked
        return self.acked >= self.packets

    def note(self, psn: int) -> None:
        """Mark a packet that the receiver holds."""
        if psn < self.lowest or self.memory.at(psn).is_acked:
            return
        self.memory.at(psn).is_acked = True
        self.memory.at(psn).is_trimmed = False
        self.trimmed.discard(psn)
        self.acked += 1
        self.highest = max(self.highest, psn)

        while self.lowest < self.memory.count and self.memory.at(self.lowest).is_acked:
            self.lowest += 1
            self.backoff = 0
