"""The runs behind an answer, seed after seed, until the order of the first three is decided.

The first seed runs all candidates, workload by workload, so that there is a table early. Then the
candidates that are not far behind get FIRST_SEEDS, and each pair that is still open twice the seeds
of the look before, `looks` times at most, within a time budget. Finished runs are kept at once.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import product
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from fattree.experiment.model import Scenario, Settings
from fattree.records.record import Record
from sim.choice.candidates import Candidate
from sim.choice.conditions import Condition
from sim.choice.ranking import far, open_pairs
from sim.errors import FailedRunsError, SweepError
from sim.sweeps.cluster import connected
from sim.sweeps.cost import packet_hops
from sim.sweeps.estimates import LOOKS
from sim.sweeps.store import Store, run_key
from sim.sweeps.sweeping import Failure, Outcomes, Run, attempt, distributed

if TYPE_CHECKING:
    from distributed import Client

FIRST_SEEDS = 4
PERCENT = 100

# A candidate, a condition and a workload, by name.
Cell: TypeAlias = tuple[str, str, str]
Looked: TypeAlias = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of runs: candidates in conditions under workloads, with weights and a margin.

    `seed` is the first seed, and `looks` is the most looks that an open pair gets.
    """

    candidates: Mapping[str, Candidate]
    conditions: Mapping[str, Condition]
    workloads: Mapping[str, Settings]
    weights: Mapping[str, float]
    margin: float
    seed: int = 1
    looks: int = LOOKS

    def scenario(self, cell: Cell, number: int) -> Scenario:
        """Return the run of a cell with the seed of this number, from 0 on."""
        candidate, condition, workload = cell
        settings = self.conditions[condition].apply(self.workloads[workload])
        return self.candidates[candidate].scenario(settings, self.seed + number)

    def cells(self, candidates: Sequence[str], workloads: Sequence[str]) -> list[Cell]:
        """Return cells, a workload after the other."""
        return [
            (candidate, condition, workload)
            for workload, condition, candidate in product(workloads, self.conditions, candidates)
        ]

    def examples(self) -> list[Scenario]:
        """Return a run of each cell."""
        return [
            self.scenario(cell, 0) for cell in self.cells(list(self.candidates), [*self.workloads])
        ]


@dataclass(slots=True)
class Progress:
    """The runs so far, their times, and the state of the decision."""

    plan: Plan
    # By cell and number of the seed: over the bound, infinite for a run that did not end.
    found: dict[Cell, dict[int, float]] = field(default_factory=dict)
    runs: dict[str, tuple[Scenario, Record]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    is_decided: bool = False
    is_out_of_time: bool = False
    far: frozenset[str] = frozenset()

    def times(self) -> dict[str, dict[str, list[float]]]:
        """Return each candidate's time in each condition by seed, the mean of its workloads.

        Of the seeds that all workloads have run with so far, from the first one on.
        """
        return {
            candidate: {
                condition: values
                for condition in self.plan.conditions
                if (values := self._values(candidate, condition, self.counted))
            }
            for candidate in self.plan.candidates
            if any(cell[0] == candidate for cell in self.found)
        }

    @property
    def counted(self) -> list[str]:
        """Return the workloads with which the first seed has run everywhere."""
        cells = len(self.plan.candidates) * len(self.plan.conditions)
        return [
            name
            for name in self.plan.workloads
            if sum(0 in seeds for cell, seeds in self.found.items() if cell[2] == name) == cells
        ]

    def _values(self, candidate: str, condition: str, workloads: Sequence[str]) -> list[float]:
        by_workload = [self.found.get((candidate, condition, name), {}) for name in workloads]
        values: list[float] = []
        while by_workload and all(len(values) in seeds for seeds in by_workload):
            values.append(fmean(seeds[len(values)] for seeds in by_workload))

        return values

    def take(self, cell: Cell, number: int, scenario: Scenario, outcome: Record | Failure) -> None:
        """Take in the outcome of a run; raises SweepError for a refused run."""
        if isinstance(outcome, Failure):
            if outcome.is_refused:
                raise SweepError(str(outcome))

            self.failures[f"{cell[0]}, {cell[1]}, {cell[2]}"] = outcome.message
            self.found.setdefault(cell, {})[number] = inf
            return

        self.found.setdefault(cell, {})[number] = PERCENT * outcome.increase
        self.runs[run_key(scenario)] = (scenario, outcome)


class _OutOfTime(Exception):
    """The time budget is used up."""


@dataclass(slots=True)
class Runner:
    """Runs scenarios in this process or in others, keeps them, and looks at the clock."""

    run: Run
    jobs: int
    store: Path | None
    deadline: float
    watch: Callable[[int, int, float], None]
    clock: Callable[[], float] = time.monotonic
    _client: "Client | None" = None
    _kept: Store | None = None

    @contextmanager
    def opened(self) -> Iterator["Runner"]:
        """Open the store, and start processes when the first runs need them."""
        with ExitStack() as stack:
            if self.store:
                self._kept = stack.enter_context(Store(self.store))
            if self.jobs > 1:
                self._client = stack.enter_context(connected(self.jobs, None))

            yield self

    def wave(self, progress: Progress, seeded_cells: Sequence[tuple[Cell, int]]) -> None:
        """Run cells with seeds; raises _OutOfTime."""
        plan = progress.plan
        asked = {
            (cell, number): plan.scenario(cell, number)
            for cell, number in seeded_cells
            if number not in progress.found.get(cell, {})
        }
        keys = {pair: run_key(scenario) for pair, scenario in asked.items()}
        kept = self._kept.find(keys.values()) if self._kept else {}
        # Two candidates may be the same run.
        of_key: dict[str, list[tuple[Cell, int]]] = {}
        for pair, key in keys.items():
            if key in kept:
                progress.take(*pair, asked[pair], kept[key])
            else:
                of_key.setdefault(key, []).append(pair)

        pending = {key: asked[cells[0]] for key, cells in of_key.items()}
        costs = {key: packet_hops(scenario) for key, scenario in pending.items()}
        total, done = max(1, sum(costs.values())), 0
        with closing(self._outcomes(pending)) as outcomes:
            for number, (key, outcome) in enumerate(outcomes, start=1):
                for pair in of_key[key]:
                    progress.take(*pair, asked[pair], outcome)
                if self._kept and isinstance(outcome, Record):
                    self._kept.add(pending[key], outcome)

                done += costs[key]
                self.watch(number, len(pending), done / total)
                if self.clock() > self.deadline and number < len(pending):
                    raise _OutOfTime

    def refuse_late(self) -> None:
        """Raise _OutOfTime after the deadline."""
        if self.clock() > self.deadline:
            raise _OutOfTime

    def _outcomes(self, pending: Mapping[str, Scenario]) -> Outcomes:
        if self._client is None:
            for key, scenario in pending.items():
                yield key, attempt(self.run, scenario)[1]
        elif pending:
            yield from distributed(self._client, pending, self.run)


def decide(plan: Plan, runner: Runner, looked: Looked = lambda _: None) -> Progress:
    """Run until the order of the first three is decided, or the time is over.

    `looked` is called when a workload has run with the first seed, and after each look. Raises
    FailedRunsError where the time was too short for a single run of each candidate.
    """
    progress = Progress(plan)
    try:
        with _telling_what_is_kept(progress, runner.store), runner.opened():
            _first_seed(progress, runner, looked)
            _more_seeds(progress, runner, looked)
    except _OutOfTime:
        progress.is_out_of_time = True

    if not progress.times() or any(not by_condition for by_condition in progress.times().values()):
        raise FailedRunsError(
            "the time is over before each candidate had a run in each condition: give more"
            f" --minutes; {len(progress.runs)} runs are{_where(runner.store)}"
        )

    return progress


def _first_seed(progress: Progress, runner: Runner, looked: Looked) -> None:
    plan = progress.plan
    for workload in plan.workloads:
        cells = plan.cells(list(plan.candidates), [workload])
        runner.wave(progress, [(cell, 0) for cell in cells])
        looked(progress)

    progress.looks = 1
    progress.far = frozenset(far(progress.times(), plan.weights))


def _more_seeds(progress: Progress, runner: Runner, looked: Looked) -> None:
    plan = progress.plan
    near = [name for name in plan.candidates if name not in progress.far]
    seeds = FIRST_SEEDS
    names = near
    while True:
        for number in range(seeds):
            cells = plan.cells(names, list(plan.workloads))
            runner.wave(progress, [(cell, number) for cell in cells])

        looked(progress)
        pairs = open_pairs(progress.times(), plan.weights, plan.margin, progress.far)
        progress.is_decided = not pairs
        if progress.is_decided or progress.looks >= plan.looks:
            return

        progress.looks += 1
        seeds *= 2
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        runner.refuse_late()


@contextmanager
def _telling_what_is_kept(progress: Progress, store: Path | None) -> Iterator[None]:
    """Give a Ctrl-C words: how many runs are kept, and where."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{len(progress.runs)} runs are{_where(store)}") from None


def _where(store: Path | None) -> str:
    return f" kept in {store}; the same command goes on" if store else " finished, and lost"
