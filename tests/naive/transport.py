"""The rules of a flow: when it may send, which packet it sends, how an acknowledgement changes it.

One class per way of recovering from losses, `Erasure`, `tests.naive.sack.Sack` and
`tests.naive.go_back_n.GoBackN`; a class per congestion control,
`FixedRate`, `SwiftWindow` and `tests.naive.nscc.NsccWindow`. A flow has an object of each, with a
`Timer` and a `Memory` that its label rule shares (load-balancers.md, "Transport"). All arithmetic
is in integers, rounded down.
"""

from dataclasses import dataclass, field
from typing import Protocol

from fattree.experiment.model import Scenario
from tests.naive.dcqcn import PARTS as WHOLE
from tests.naive.dcqcn import DcqcnRate
from tests.naive.draws import Purpose, number, scaled
from tests.naive.nscc import News
from tests.naive.wire import NEVER, Wire

# SACK: the bitmap of an ACK is no longer; no sender is further ahead of its lowest hole.
MOST_REMEMBERED = 1024
MOST_DOUBLINGS = 16

# How many late holes in a row halve the window, of at most how many delays the median is taken.
PATIENCE = {"swift": (1, 1), "lazy_swift": (5, 1), "mswift": (5, MOST_REMEMBERED)}
# Swift's windows are counted in these parts of a packet, its delays in whole nanoseconds.
PARTS = 2**16
NS = 1_000


@dataclass(slots=True)
class Sent:
    """A sender's data about a packet: when it was last sent, its label, its state.

    `first_label` is that of a copy which was late when this second one left. Once they have timed
    out `is_counted`.
    """

    sent_ps: int
    label: int
    first_label: int | None = None
    is_counted: bool = False
    is_acked: bool = False
    is_resent: bool = False
    is_trimmed: bool = False
    is_again: bool = False

    def lost_labels(self) -> list[int]:
        """Return the labels of the copies that are lost, for a timeout has passed; once."""
        copies = [self.label, self.first_label]
        labels = [label for label in copies if label is not None and not self.is_counted]
        self.is_counted = True
        self.first_label = None
        return labels

    def overtook(self, label: int) -> int | None:
        """Return the label of the late copy if it is lost: the second copy's ACK comes first.

        Else it was only late. Either way it is in doubt no longer.
        """
        first, self.first_label = self.first_label, None
        return first if label == self.label else None


@dataclass(slots=True)
class Memory:
    """The packets that were sent, `places` of them at most: packet n overwrites n - places.

    `lost` are labels of packets that were sent again for want of an answer, until they are read.
    """

    places: int
    count: int = 0
    packets: dict[int, Sent] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)

    def add(self, label: int, now_ps: int) -> int:
        """Remember a new packet; return its number."""
        psn = self.count
        self.count += 1
        self.packets[psn % self.places] = Sent(now_ps, label)
        return psn

    def at(self, psn: int) -> Sent:
        """Return the entry at a packet's place: the packet, or a later packet that overwrote it."""
        return self.packets[psn % self.places]

    def knows(self, psn: int) -> bool:
        """Tell whether a packet that was sent is not overwritten."""
        return psn >= self.count - self.places


def places(scenario: Scenario, packets: int, gap_ps: int) -> int:
    """Return how many packets a flow remembers: a power of two.

    Twice the message, or 16 more than leave in 16 zero-load RTTs if that is less.
    """
    in_16_rtts = 16 * Wire(scenario).zero_load_rtt_ps // gap_ps
    enough = min(2 * packets, 16 + in_16_rtts)
    size = 1
    while size < enough:
        size *= 2
    return min(size, MOST_REMEMBERED)


@dataclass(slots=True)
class Timer:
    """Smoothed round-trip time and its variation (RFC 6298): gains 1/8 and 1/4."""

    zero_load_rtt_ps: int
    floor_ps: int
    # An ACK may wait for so many more packets to tell of.
    held_back: int
    pacer: "Pacer"
    srtt_ps: int | None = None
    rttvar_ps: int = 0

    def sample(self, rtt_ps: int) -> None:
        """Learn from one round trip."""
        if self.srtt_ps is None:
            self.srtt_ps = rtt_ps
            self.rttvar_ps = rtt_ps // 2
        else:
            error_ps = rtt_ps - self.srtt_ps
            self.rttvar_ps += (abs(error_ps) - self.rttvar_ps) // 4
            self.srtt_ps += error_ps // 8

    @property
    def timeout_ps(self) -> int:
        """Return after how long an unacknowledged packet times out."""
        held_back_ps = self.held_back * self.pacer.last_step_ps
        if self.srtt_ps is None:
            return held_back_ps + max(3 * self.zero_load_rtt_ps, self.floor_ps)
        return held_back_ps + max(self.srtt_ps + 4 * self.rttvar_ps, self.floor_ps)

    @property
    def pause_ps(self) -> int:
        """Return an erasure sender's pause: an srtt, or 3 zero-load RTTs before the first RTT."""
        return 3 * self.zero_load_rtt_ps if self.srtt_ps is None else self.srtt_ps


@dataclass(slots=True)
class Pacer:
    """The time of the next packet: a gap and some jitter after the last; no catching up.

    The gap is multiplied by the receiver's last share. A flow that goes in turn is due from its
    beginning on.
    """

    scenario: Scenario
    flow: int
    gap_ps: int
    begin_ps: int = 0
    transmissions: int = 0
    first_ps: int = NEVER
    last_ps: int = 0
    share: int = 1
    is_whole: bool = False
    # Not before that, but for an answer to a probe.
    held_until_ps: int | None = None
    next_ps: int | None = None
    planned_step_ps: int | None = None
    dcqcn: DcqcnRate | None = None

    @property
    def due_ps(self) -> int:
        """Return when the next packet may leave."""
        return self.begin_ps if self.next_ps is None else self.next_ps

    @property
    def step_ps(self) -> int:
        """Return the time between two packets."""
        return (
            self.dcqcn.slowed(self.gap_ps * self.share) if self.dcqcn else self.gap_ps * self.share
        )

    @property
    def last_step_ps(self) -> int:
        """Return the time between two packets, by the rate when the last packet left."""
        return self.step_ps if self.planned_step_ps is None else self.planned_step_ps

    @property
    def pace_ps(self) -> int:
        """Return the time between two packets, 0 for flows that go in turn."""
        is_slow = self.dcqcn is not None and self.dcqcn.rate < WHOLE
        return 0 if self.is_whole and self.share == 1 and not is_slow else self.step_ps

    def plan(self) -> None:
        """Fix the time of the next packet: later shares count for the packets after it."""
        self.planned_step_ps = self.step_ps
        self.next_ps = self.last_ps + self.pace_ps if self.pace_ps else self.begin_ps

    def go_on(self) -> None:
        """End the wait of a flow that is held."""
        if self.held_until_ps is not None:
            self.held_until_ps = None
            self.plan()

    def on_mark(self, now_ps: int) -> None:
        if self.dcqcn:
            self.dcqcn.on_mark(now_ps)

    def sent(self, now_ps: int) -> None:
        """Note that a packet leaves."""
        if not self.transmissions:
            self.first_ps = now_ps
        self.transmissions += 1
        self.last_ps = now_ps
        if self.dcqcn:
            self.dcqcn.on_sent(now_ps)
        self.plan()

        permille = round(self.scenario.transport.pacing_jitter * 1000)
        if permille:
            draw = number(self.scenario.seed, Purpose.JITTER, self.flow, self.transmissions)
            assert self.next_ps is not None
            self.next_ps += scaled(draw, self.pace_ps * permille // 1000)
        if self.held_until_ps is not None:
            assert self.next_ps is not None
            self.next_ps = max(self.next_ps, self.held_until_ps)

    def hear_share(self, share: int) -> None:
        """Learn how many flows share the receiver's link."""
        if share != self.share:
            self.share = share
            if self.held_until_ps is None:
                self.plan()
            self.planned_step_ps = self.step_ps


class Recovery(Protocol):
    """The base of all recoveries."""

    memory: Memory
    timer: Timer
    pacer: Pacer
    acked: int

    def ready_ps(self) -> int:
        """Return when the flow may send if nothing arrives until then, NEVER if it will not."""

    def send(self, label: int, now_ps: int) -> int:
        """Return the number of the packet that leaves."""

    def asks(self, psn: int) -> bool:
        """Tell whether the packet that left last needs its ACK at once."""

    def on_ack(self, psn: int, total: int, held: frozenset[int], marked: bool, now_ps: int) -> bool:
        """Take in an ACK; return whether the message is complete.

        `total` counts the receiver's packets, `held` names them if the ACK does.
        """

    def on_nack(self, psn: int, total: int, held: frozenset[int], now_ps: int) -> bool:
        """Take in that a switch has cut a packet; return whether the message is complete."""


@dataclass(slots=True)
class Erasure:
    """Every packet is a new symbol, and any `packets` of them complete the message.

    The sender goes on while the packets under way would not complete the message. Where they would,
    it stops when the next packet is due. When more than an srtt, the one known then, has passed
    since its first stop, it sends all the same.
    """

    packets: int
    memory: Memory
    timer: Timer
    pacer: Pacer
    acked: int = 0
    heard_of: int = 0
    stopped_ps: int | None = None

    @property
    def is_enough(self) -> bool:
        """Tell whether the message is complete if all packets under way arrive.

        Of the first `heard_of` packets no more arrivals are expected.
        """
        under_way = self.memory.count - max(self.heard_of, self.acked)
        return self.acked + under_way >= self.packets

    def ready_ps(self) -> int:
        if self.is_enough and self.stopped_ps is not None:
            return max(self.pacer.due_ps, self.stopped_ps + self.timer.pause_ps)
        return self.pacer.due_ps

    def send(self, label: int, now_ps: int) -> int:
        psn = self.memory.add(label, now_ps)
        self.pacer.sent(now_ps)
        self.look(now_ps)
        return psn

    def asks(self, psn: int) -> bool:
        return self.is_enough

    def look(self, now_ps: int) -> None:
        """Note the first stop; a stop that is still to come is expected anew."""
        if self.stopped_ps is not None and self.stopped_ps < now_ps:
            return
        self.stopped_ps = max(self.pacer.due_ps, now_ps) if self.is_enough else None

    def on_ack(self, psn: int, total: int, held: frozenset[int], marked: bool, now_ps: int) -> bool:
        if self.memory.knows(psn):
            packet = self.memory.at(psn)
            packet.is_acked = True
            self.timer.sample(now_ps - packet.sent_ps)
        if marked:
            self.pacer.on_mark(now_ps)
        return self.hear(psn, total, now_ps)

    def on_nack(self, psn: int, total: int, held: frozenset[int], now_ps: int) -> bool:
        if self.memory.knows(psn):
            self.memory.at(psn).is_acked = True
        self.pacer.on_mark(now_ps)
        return self.hear(psn, total, now_ps)

    def hear(self, psn: int, total: int, now_ps: int) -> bool:
        """Learn the highest number and the count of arrivals; return whether all are there."""
        # An older ACK with a smaller count may arrive later.
        self.acked = max(self.acked, total)
        self.heard_of = max(self.heard_of, psn + 1)
        self.look(now_ps)
        return self.acked >= self.packets


class Congestion(Protocol):
    """The base of all congestion controls."""

    def allows(self, outstanding: int) -> bool:
        """Tell whether one more packet may be outstanding."""

    def on_ack(self, news: News) -> None:
        """Learn from an ACK."""

    def on_late_hole(self, now_ps: int) -> None:
        """Learn that a packet is missing while enough later ones have arrived."""

    def on_spurious(self) -> None:
        """Learn that a packet was sent again although the first was on its way."""

    def on_timeout(self, now_ps: int) -> None:
        """Learn that a packet has timed out."""

    def on_timed_out(self) -> None:
        """Learn that a packet is sent again because it has timed out."""

    def on_nack(self, acked: int, outstanding: int, now_ps: int) -> None:
        """Learn that a switch has cut a packet; so many more have arrived, others are under way."""


class FixedRate:
    """No congestion control: only the pace counts."""

    def allows(self, outstanding: int) -> bool:
        return True

    def on_ack(self, news: News) -> None:
        pass

    def on_late_hole(self, now_ps: int) -> None:
        pass

    def on_spurious(self) -> None:
        pass

    def on_timeout(self, now_ps: int) -> None:
        pass

    def on_timed_out(self) -> None:
        pass

    def on_nack(self, acked: int, outstanding: int, now_ps: int) -> None:
        pass


@dataclass(slots=True)
class SwiftWindow:
    """Swift's window over the median of recent delays, with Lazy TCP's patience, or with neither.

    `target_ps` is the path's share of a zero-load RTT and 113 KB of queues; the window begins with
    the packets of that time.
    """

    target_ps: int
    timer: Timer
    most_holes: int
    most_delays: int
    window: int
    delays_ns: list[int] = field(default_factory=list)
    decreased_ps: int = 0
    late_holes: int = 0

    def allows(self, outstanding: int) -> bool:
        return outstanding < self.window // PARTS

    def on_ack(self, news: News) -> None:
        acked, rtt_ps, now_ps = news.acked, news.rtt_ps, news.now_ps
        if rtt_ps is not None and now_ps - rtt_ps < self.decreased_ps:
            return  # It left before the last cut: it cannot show the cut's effect.
        if rtt_ps is not None:
            self.delays_ns.append(rtt_ps // NS)
        if not self.delays_ns:
            return

        delay_ns, target_ns = self.median_ns(), self.target_ps // NS
        if delay_ns < target_ns:
            # One packet a round trip: ai = 1 for a window's worth of ACKs.
            grown = self.window + acked * PARTS * PARTS // self.window
            self.window = min(grown, MOST_REMEMBERED * PARTS)
        else:
            # beta = 4/5 of the share of the delay that is too much.
            self.cut(self.window * 4 * (delay_ns - target_ns) // (5 * delay_ns), now_ps)

    def median_ns(self) -> int:
        """Return the median of the delays of the last half window; of an even number, the mean."""
        count = max(self.window // PARTS // 2, 1)
        recent = sorted(self.delays_ns[-min(count, self.most_delays) :])
        middle = len(recent) // 2
        return recent[middle] if len(recent) % 2 else (recent[middle - 1] + recent[middle]) // 2

    def on_late_hole(self, now_ps: int) -> None:
        self.late_holes += 1
        if self.late_holes == self.most_holes:
            self.late_holes = 0
            self.halve(now_ps)

    def on_spurious(self) -> None:
        self.late_holes = 0

    def on_timeout(self, now_ps: int) -> None:
        self.halve(now_ps)

    def on_timed_out(self) -> None:
        pass

    def on_nack(self, acked: int, outstanding: int, now_ps: int) -> None:
        self.on_late_hole(now_ps)

    def halve(self, now_ps: int) -> None:
        self.cut(self.window // 2, now_ps)

    def cut(self, amount: int, now_ps: int) -> None:
        """Shrink the window, by half at most, to one packet at least, once a round trip."""
        if self.timer.srtt_ps is None or now_ps - self.decreased_ps >= self.timer.srtt_ps:
            self.window = max(self.window - min(amount, self.window // 2), PARTS)
            self.decreased_ps = now_ps
