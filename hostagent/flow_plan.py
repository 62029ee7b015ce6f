"""Plans of a run for a host: its flows, and the flows that they wait for."""

from collections.abc import Callable
from typing import NamedTuple


class FlowPlan(NamedTuple):
    """One flow of a run.

    It starts at `start_ps`, or when all of `after` are complete here (`Rules.awaits_acks`), and is
    due a phase later. Its last packet carries `less` bytes less than others. Without packets it is
    a computation that takes `compute_ps`. With `in_turn` it leaves as a whole, before flows that
    its host begins later.
    """

    flow: int
    source: int
    destination: int
    packets: int
    gap_ps: int
    phase_ps: int
    start_ps: int
    hops: int
    after: tuple[int, ...] = ()
    compute_ps: int = 0
    in_turn: int = 0
    less: int = 0


class Waits:
    """Waiting flows of a machine: a flow's end at one host may start flows of all its hosts."""

    def __init__(self) -> None:
        self._blocked: dict[int, int] = {}
        self._followers: dict[int, list[int]] = {}
        self._start: dict[int, Callable[[int, int], None]] = {}

    def add(self, plan: FlowPlan, start: Callable[[int, int], None]) -> None:
        """Let a flow `start` (flow, time) when all flows that it waits for are complete."""
        self._blocked[plan.flow] = len(plan.after)
        self._start[plan.flow] = start
        for awaited in plan.after:
            self._followers.setdefault(awaited, []).append(plan.flow)

    def complete(self, flow: int, now_ps: int) -> None:
        """Start the flows that waited for `flow` alone."""
        for waiting in self._followers.get(flow, ()):
            self._blocked[waiting] -= 1
            if not self._blocked[waiting]:
                self._start[waiting](waiting, now_ps)
