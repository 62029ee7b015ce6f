"""The label rules of load balancers that the paper does not have (docs/load-balancers-since.md)."""

from collections import deque

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
        for label in watch.expired(now_ps):
            self.punish(label, MOST_PENALTY)

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


class Mrc:
    """MRC over ECMP: entropy values in turn, without congested ones and those that lost a packet.

    A good value is in no set; a value with a loss is retired, with the number of its turns since.
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
        self.retired: dict[int, int] = {}
        self.probed: set[int] = set()

    def on_lost(self, label: int) -> None:
        """Retire the value of a lost packet."""
        value = label % self.count
        self.skipped.discard(value)
        self.retired.setdefault(value, 0)

    def next(self, watch: Watch, now_ps: int) -> int:
        for label in watch.expired(now_ps):
            self.on_lost(label)

        may_forgive = True
        while True:
            value = self.order[0]
            self.order.rotate(-1)
            if value in self.retired:
                self.retired[value] += 1
                if self.retired[value] % 16 == 0:
                    self.probed.add(value)
                    break
            elif value not in self.skipped:
                break
            elif may_forgive:
                self.skipped.remove(value)
                may_forgive = False
        return self.upper * self.count + value

    def hear(self, label: int, is_congested: bool) -> None:
        """Learn from a packet that has reached the receiver."""
        value = label % self.count
        if value in self.probed:
            self.probed.remove(value)
            del self.retired[value]
        if is_congested and value not in self.retired:
            self.skipped.add(value)

    def on_ack(self, label: int, marked: bool, now_ps: int) -> None:
        self.hear(label, marked)

    def on_nack(self, label: int, now_ps: int) -> None:
        self.hear(label, True)
