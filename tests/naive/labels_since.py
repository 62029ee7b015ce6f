"""The label rules of load balancers that the paper does not have (docs/load-balancers-since.md)."""

from collections import deque
from dataclasses import dataclass

from fattree.experiment.model import Scenario
from tests.naive.collectives import named_nics
from tests.naive.labels import Draws, Unheeding, Watch

PATHS = 64
MOST_PENALTY = 15


class Bitmap(Unheeding):
    """UET Bitmap: path labels in turn, in an order drawn for each round, without penalised ones."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.penalties = [0] * PATHS
        self.upper = draws.label() // PATHS
        self.round = self.new_round()

    def new_round(self) -> list[int]:
        """Return all paths in the order of a round, the next one last."""
        flip = self.draws.label() % PATHS
        return [turn ^ flip for turn in reversed(range(PATHS))]

    def take(self) -> int:
        """Return the next path of the round."""
        path = self.round.pop()
        self.round = self.round or self.new_round()
        return path

    def punish(self, label: int, penalty: int) -> None:
        path = label % PATHS
        self.penalties[path] = min(self.penalties[path] + penalty, MOST_PENALTY)

    def next(self, watch: Watch, now_ps: int) -> int:
        for packet in watch.expired(now_ps):
            self.punish(packet.label, MOST_PENALTY)

        path = self.take()
        if self.penalties[path]:
            self.penalties[path] -= 1
            taken = [self.take()]
            while self.penalties[taken[-1]] and len(taken) < PATHS:
                taken.append(self.take())
            path = taken[-1]
        return self.upper * PATHS + path

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        if marked:
            self.punish(label, 1)

    def on_nack(self, label: int, now_ps: int) -> None:
        self.punish(label, 4)


@dataclass(slots=True)
class Retired:
    """A value that has lost a packet: its turns since, and the answers to its probes in a row."""

    rested: int = 0
    answers: int = 0
    is_probed: bool = False


class Mrc:
    """MRC: entropy values in turn, without congested ones and those that lost a packet.

    A good value is in no set. A value with a loss is retired: after 16 turns a packet probes it,
    and after each answer the packet of its next turn does; with three answers in a row it is back.
    A probe of a value without an answer takes 16 packets on good values before it, of which those
    for half of all values count at most, unless all are retired.
    """

    def __init__(self, scenario: Scenario, draws: Draws) -> None:
        # A connection has 128 at least; a connection over all planes has as many in each.
        rails = all(
            collective.placement == "rail"
            or (collective.matrix == "workload" and named_nics(collective.file or ""))
            for collective in scenario.collectives
        )
        is_in_all = scenario.fabric.plane_use != "keep" and not rails
        planes = (scenario.fabric.planes or 1) if is_in_all else 1
        self.count = next(1 << bits for bits in range(8) if planes << bits >= 128)

        self.upper = draws.label() // self.count
        flip = draws.label() % self.count
        self.order = deque(turn ^ flip for turn in range(self.count))
        self.skipped: set[int] = set()
        self.retired: dict[int, Retired] = {}
        self.credit = 0
        self.is_heard = False

    @property
    def is_out(self) -> bool:
        return len(self.retired) == self.count

    def is_probe(self, label: int) -> bool:
        return label % self.count in self.retired

    def on_lost(self, label: int) -> None:
        value = label % self.count
        self.skipped.discard(value)
        if value not in self.retired or self.retired[value].answers:
            self.retired[value] = Retired()

    def next(self, watch: Watch, now_ps: int) -> int:
        for packet in watch.expired(now_ps):
            for label in packet.lost_labels():
                self.on_lost(label)

        may_forgive = True
        while True:
            value = self.order[0]
            self.order.rotate(-1)
            if value in self.retired:
                if self.is_to_probe(self.retired[value]):
                    break
            elif value not in self.skipped:
                self.credit = min(self.credit + 1, self.count * 8)
                break
            elif may_forgive:
                self.skipped.remove(value)
                may_forgive = False
        return self.upper * self.count + value

    def is_to_probe(self, value: Retired) -> bool:
        """Let a retired value rest for its turn, or let the packet probe it."""
        value.rested += 1
        if value.rested < 16:
            return False
        if not value.answers:
            if self.credit < 16 and not self.is_out:
                return False
            self.credit = max(self.credit - 16, 0)
        # An answer that has not come by now ends the row.
        value.answers = 0 if value.is_probed else value.answers
        value.rested = 0
        value.is_probed = True
        return True

    def hear(self, label: int, is_congested: bool) -> None:
        """Learn from a packet that has reached the receiver."""
        value = label % self.count
        if value in self.retired:
            retired = self.retired[value]
            if not retired.is_probed:
                return
            self.is_heard = True
            if retired.answers < 2:
                self.retired[value] = Retired(rested=16, answers=retired.answers + 1)
                if self.is_out:
                    self.order.rotate(-self.order.index(value))
                return
            del self.retired[value]
        if is_congested:
            self.skipped.add(value)

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        self.hear(label, marked)

    def on_nack(self, label: int, now_ps: int) -> None:
        self.hear(label, True)
