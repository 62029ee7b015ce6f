"""Which flow label a packet carries: one class per rule (load-balancers.md, "Hosts").

`next` runs when a packet leaves, `on_ack` at every ACK, before the transport's.
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from fattree.experiment.model import Scenario
from tests.naive.draws import Purpose, number, scaled
from tests.naive.transport import Memory, Sent, Timer
from tests.naive.wire import PS_PER_US

RING = 8


@dataclass(slots=True)
class Draws:
    """A flow's random labels, 16 bits each, one after the other."""

    seed: int
    flow: int
    count: int = 0

    def label(self) -> int:
        drawn = number(self.seed, Purpose.LABEL, self.flow, self.count) % 2**16
        self.count += 1
        return drawn


@dataclass(slots=True)
class Watch:
    """Finds a message's packets without an ACK for the label timeout, in order.

    `freezes` counts how often REPS froze because of them.
    """

    memory: Memory
    timer: Timer
    oldest: int = 0
    freezes: int = 0

    def expired(self, now_ps: int) -> list[Sent]:
        """Return the packets that timed out since the last call."""
        packets = []
        while self.oldest < self.memory.count:
            packet = self.memory.at(self.oldest)
            if not packet.is_acked and not packet.is_trimmed:
                if packet.sent_ps + self.timer.timeout_ps > now_ps:
                    break
                packets.append(packet)
            self.oldest += 1
        return packets


class LabelRule(Protocol):
    """The base of all rules, of a message or of all messages between two hosts.

    `is_out`: no label is left that may be good. `is_heard`: a probe has been answered since.
    """

    is_heard: bool

    @property
    def is_out(self) -> bool: ...

    def is_probe(self, label: int) -> bool:
        """Tell whether a packet of a label that was just chosen is to test its path."""

    def next(self, watch: Watch, now_ps: int) -> int:
        """Return the label of the packet that leaves, of the message that is watched."""

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        """Learn from an ACK that echoes a label and a mark."""

    def on_nack(self, label: int, now_ps: int) -> None:
        """Learn that a switch has cut a packet of a label."""

    def on_lost(self, label: int) -> None:
        """Learn that a packet of a label was lost."""


class Unheeding:
    """A rule that learns nothing."""

    is_out = False
    is_heard = False

    def is_probe(self, label: int) -> bool:
        return False

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        pass

    def on_nack(self, label: int, now_ps: int) -> None:
        pass

    def on_lost(self, label: int) -> None:
        pass


class Fixed(Unheeding):
    """One random label per flow."""

    def __init__(self, draws: Draws) -> None:
        self.label = draws.label()

    def next(self, watch: Watch, now_ps: int) -> int:
        return self.label


class Fresh(Unheeding):
    """A random label per packet. The flow's first is drawn and never used."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        draws.label()

    def next(self, watch: Watch, now_ps: int) -> int:
        return self.draws.label()


class Plb(Unheeding):
    """Host Flowlet AR: leave a path that has not been good for a while, or that no ACK comes from.

    A path is good while fewer than `plb_percent` of the last `plb_acks` ACKs were marked. The timer
    runs from the first packet after an ACK, and from a timeout.
    """

    def __init__(self, scenario: Scenario, draws: Draws, timer: Timer, gap_ps: int) -> None:
        self.options = scenario.load_balancer
        self.draws = draws
        self.timer = timer
        self.timer_began_ps: int | None = None
        self.gap_ps = gap_ps
        self.marks: deque[bool] = deque(maxlen=self.options.plb_acks)
        self.good_ps: int | None = None
        self.changed_ps = 0
        self.label = draws.label()
        self.draw_patience()

    def draw_patience(self) -> None:
        """Choose how long a path may stay bad: some gaps, and at random up to two more."""
        draws = self.draws
        more = number(draws.seed, Purpose.PATIENCE, draws.flow, draws.count)
        self.patience_ps = self.options.plb_gaps * self.gap_ps + scaled(more, 2 * self.gap_ps)

    def change(self, now_ps: int) -> None:
        self.label = self.draws.label()
        self.changed_ps = now_ps
        self.draw_patience()

    def next(self, watch: Watch, now_ps: int) -> int:
        if self.timer_began_ps is None:
            self.timer_began_ps = now_ps
        if self.timer_began_ps + self.timer.timeout_ps <= now_ps:
            self.timer_began_ps = now_ps
            self.change(now_ps)
        return self.label

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        self.timer_began_ps = None
        self.marks.append(marked)
        is_good = sum(self.marks) * 100 < self.options.plb_percent * len(self.marks)
        if is_good or self.good_ps is None:
            self.good_ps = now_ps
        elif now_ps - max(self.good_ps, self.changed_ps) > self.patience_ps:
            self.change(now_ps)

    def on_nack(self, label: int, now_ps: int) -> None:
        self.on_ack(label, True, now_ps)


@dataclass(slots=True)
class Entry:
    """A place of the ring of REPS: a label, and whether it was not used since its ACK."""

    label: int | None = None
    is_fresh: bool = False


def empty_ring() -> list[Entry]:
    return [Entry() for _ in range(RING)]


class Reps(Unheeding):
    """Host Pkt AR: reuse the labels of packets that came back unmarked.

    After a timeout the sender is frozen: it uses labels of the ring, fresh or not, and later
    explores.
    """

    def __init__(self, scenario: Scenario, draws: Draws) -> None:
        self.options = scenario.load_balancer
        self.freeze_ps = round(scenario.load_balancer.freeze_us * PS_PER_US)
        self.draws = draws
        self.ring = empty_ring()
        self.head = 0
        self.frozen_until_ps: int | None = None
        self.frozen_head = 0
        self.explore = 0
        draws.label()

    def next(self, watch: Watch, now_ps: int) -> int:
        if self.frozen_until_ps is not None and now_ps >= self.frozen_until_ps:
            self.thaw()

        expired = watch.expired(now_ps)
        for packet in expired:
            self.forget(packet.label)
        if expired and self.frozen_until_ps is None and not self.explore:
            watch.freezes += 1
            self.freeze(now_ps)

        if self.explore:
            self.explore -= 1
            return self.draws.label()
        if self.frozen_until_ps is not None:
            return self.frozen_label()
        return self.fresh_label()

    def freeze(self, now_ps: int) -> None:
        self.frozen_until_ps = now_ps + self.freeze_ps
        self.frozen_head = self.head

    def thaw(self) -> None:
        """Forget everything and explore."""
        self.frozen_until_ps = None
        self.explore = self.options.reps_explore_packets
        self.ring = empty_ring()

    def frozen_label(self) -> int:
        """Return the next label around the ring."""
        for step in range(RING):
            index = (self.frozen_head + step) % RING
            label = self.ring[index].label
            if label is not None:
                self.ring[index].is_fresh = False
                self.frozen_head = (index + 1) % RING
                return label
        return self.draws.label()

    def fresh_label(self) -> int:
        """Return the oldest fresh label: the first from the head, where the next is written."""
        for step in range(RING):
            entry = self.ring[(self.head + step) % RING]
            if entry.is_fresh and entry.label is not None:
                entry.is_fresh = False
                return entry.label
        return self.draws.label()

    def forget(self, label: int) -> None:
        """Do not use a label again until it is acknowledged again."""
        self.ring = [Entry() if entry.label == label else entry for entry in self.ring]

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        if not marked:
            self.ring[self.head] = Entry(label, is_fresh=True)
            self.head = (self.head + 1) % RING
