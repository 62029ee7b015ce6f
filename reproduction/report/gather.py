"""Run the figures' scenarios: each distinct scenario once, kept as soon as it is finished.

Early seeds and small runs come first, so a report that was interrupted has all figures with fewer
seeds, not fewer figures.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from reproduction.report.claims import Claim, sure
from reproduction.report.figure import FEW, Data, Figure, Measured, Preset, Verdict
from reproduction.report.looks import LOOKS, more_seeds
from sim.sweeps import sweeping as sweeps
from sim.sweeps.cluster import connected
from sim.sweeps.cost import packet_hops
from sim.sweeps.store import Store, run_key

# Between a permutation of 16 MB on 128 hosts, with 6 million packet-hops, and their all-to-all of
# 1 MB, with 50 million.
LARGE_RUN = 15_000_000
# Small runs have three seeds, enough for a first interval, before a large run has its first.
SEEDS_BEFORE_LARGE = 3
# Where a pass over all figures ends and the next begins, in seeds from the first.
PASSES = (3, 6)
# The store of runs that no figure measures more of: figures share them.
PLAIN = "runs"

# The scenarios of each figure, by its name: those of the first look, then ever more seeds.
Asked = Mapping[str, Sequence[Scenario]]
# `report(what, done, total)`: in packet-hops, roughly.
Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Scenarios that one function runs, and the file that keeps their results."""

    store: Path
    run: sweeps.Run
    kind: type[Record]
    scenarios: tuple[Scenario, ...]


@dataclass(frozen=True, slots=True)
class Machines:
    """Where runs are computed: processes here, or the workers of a Dask scheduler."""

    jobs: int = 1
    scheduler: str | None = None


def first_look(figures: Iterable[Figure], preset: Preset) -> dict[str, Sequence[Scenario]]:
    """Return the scenarios that every figure asks for first."""
    return {figure.name: figure.scenarios(preset) for figure in figures}


def batches(figures: Iterable[Figure], asked: Asked, folder: Path) -> dict[str, Batch]:
    """Return the figures' distinct scenarios by the function that runs them, in running order."""
    runs: dict[str, sweeps.Run] = {}
    distinct: dict[str, dict[str, Scenario]] = {}
    for figure in figures:
        name = figure.measure_id or PLAIN
        runs[name] = figure.measure or sweeps.simulate
        # By key: the same run under the names of several figures' parts is computed once.
        distinct.setdefault(name, {}).update(
            (run_key(scenario), scenario) for scenario in asked[figure.name]
        )

    # The cheapest store first: after a minute most figures have something to show.
    return {
        name: Batch(
            store=folder / f"{name}.sqlite",
            run=runs[name],
            kind=Record if name == PLAIN else Measured,
            scenarios=tuple(sorted(distinct[name].values(), key=priority)),
        )
        for name in sorted(runs, key=lambda name: sum(map(packet_hops, distinct[name].values())))
        if distinct[name]
    }


def priority(scenario: Scenario) -> tuple[int, int]:
    """Return the rank of a run: by its seed, with large runs some seeds behind; then by cost."""
    cost = packet_hops(scenario)
    return scenario.seed + (SEEDS_BEFORE_LARGE if cost > LARGE_RUN else 0), cost


def compute(gathered: dict[str, Batch], machines: Machines, progress: Progress) -> int:
    """Run the scenarios that the stores do not hold yet; return the number of runs.

    Raises SweepError if some failed.
    """
    pending = {name: _pending(batch) for name, batch in gathered.items()}
    every = [scenario for missing in pending.values() for scenario in missing]
    if not every:
        return 0

    total = sum(map(packet_hops, every))
    done = 0
    with _workers(machines) as workers:
        for share in _passes(every):
            for name, batch in gathered.items():
                due = [scenario for scenario in pending[name] if priority(scenario)[0] in share]
                if due:
                    _sweep(
                        batch,
                        due,
                        workers,
                        _counting(name, due, before=done, total=total, progress=progress),
                    )

                    done += sum(map(packet_hops, due))

    return len(every)


def _passes(scenarios: Sequence[Scenario]) -> list[range]:
    """Return the ranks of the first seeds, of some more, and of the rest."""
    ranks = [priority(scenario)[0] for scenario in scenarios]
    first = min(ranks)
    end = max(ranks) + 1
    borders = [first, *(first + seeds for seeds in PASSES if first + seeds < end), end]

    return [range(low, high) for low, high in pairwise(borders)]


def _sweep(
    batch: Batch, due: Sequence[Scenario], machines: Machines, report: sweeps.Report
) -> None:
    places = {"jobs": machines.jobs, "scheduler": machines.scheduler}
    sweeps.sweep(due, store=batch.store, run=batch.run, kind=batch.kind, report=report, **places)  # type: ignore[arg-type]


def _counting(
    name: str, due: Sequence[Scenario], before: int, total: int, progress: Progress
) -> sweeps.Report:
    """Return a report of finished runs that passes packet-hops to `progress`."""
    # A sweep counts finished runs without naming them. As if they finished in order: wrong by the
    # few that are running, and right at the end.
    costs = [0, *accumulate(map(packet_hops, due))]
    return lambda finished, _of: progress(name, before + costs[finished], total)


@contextmanager
def _workers(machines: Machines) -> Iterator[Machines]:
    """Start the processes once for all sweeps; a given scheduler and one job stay as they are."""
    # A new process loads the engine first; sweeps' own would do so again for each store and pass.
    if machines.scheduler or machines.jobs == 1:
        yield machines
        return

    with connected(machines.jobs, None) as client:
        yield Machines(machines.jobs, client.scheduler.address)


def _pending(batch: Batch) -> list[Scenario]:
    keys = [run_key(scenario) for scenario in batch.scenarios]
    with Store(batch.store, kind=batch.kind) as store:
        finished = store.find(keys)

    return [
        scenario for key, scenario in zip(keys, batch.scenarios, strict=True) if key not in finished
    ]


def collect(
    figures: Iterable[Figure], asked: Asked, preset: Preset, folder: Path
) -> dict[str, Data]:
    """Return every figure's data from the stores.

    Seeds with runs that are not there yet are left out, part by part.
    """
    return {figure.name: _data(figure, asked[figure.name], preset, folder) for figure in figures}


def _data(figure: Figure, scenarios: Sequence[Scenario], preset: Preset, folder: Path) -> Data:
    keys = [run_key(scenario) for scenario in scenarios]
    path = folder / f"{figure.measure_id or PLAIN}.sqlite"
    records: dict[str, Record] = {}

    if scenarios and path.is_file():
        with Store(path, kind=Measured if figure.measure else Record) as store:
            records = store.find(dict.fromkeys(keys))

    # Criteria pair schemes by seed, and a mean over other seeds than its neighbour's misleads: a
    # seed counts in a part of a figure when all of its runs there are finished.
    unfinished = {
        (scenario.name, scenario.seed)
        for key, scenario in zip(keys, scenarios, strict=True)
        if key not in records
    }

    kept = [
        (scenario, records[key])
        for key, scenario in zip(keys, scenarios, strict=True)
        if (scenario.name, scenario.seed) not in unfinished
    ]

    return Data(
        preset=preset,
        scenarios=tuple(scenario for scenario, _ in kept),
        # A stored run has the name that it was first asked for under; here it is this figure's.
        records=tuple(
            record.model_copy(update={"name": scenario.name}) for scenario, record in kept
        ),
        missing=len(scenarios) - len(kept),
    )


def follow(
    figures: Sequence[Figure],
    preset: Preset,
    claims: Mapping[str, Claim],
    fetch: Callable[[Asked], dict[str, Data]],
    tell: Callable[[int, Sequence[str], int], None] = lambda look, undecided, runs: None,
) -> tuple[dict[str, Data], dict[str, tuple[int, int]]]:
    """Look at the figures' data, with more seeds for undecided claims, until none is undecided.

    Returns the data, and for each claim the look that decided it and the most seeds that it had
    asked for by then. `tell` gets each further look, the claims that need it, and its runs.
    """
    first: Asked = first_look(figures, preset)
    asked = first
    figure_data = fetch(asked)
    looks = dict.fromkeys(claims, (1, 0))

    for look in range(2, LOOKS + 1):
        # A mere look decides nothing anyway, and unfinished data want no more seeds.
        if preset.level == "quick" or any(data.missing for data in figure_data.values()):
            break

        open_ = {
            figure.name: undecided(figure, figure_data[figure.name], claims) for figure in figures
        }
        more = {
            figure.name: more_seeds(
                asked[figure.name],
                first[figure.name],
                [verdict.needs for verdict in open_[figure.name]],
            )
            for figure in figures
        }
        runs = sum(len(more[name]) - len(asked[name]) for name in asked)
        if not runs:
            break

        open_claims = {verdict.claim for verdicts in open_.values() for verdict in verdicts}
        tell(look, sorted(open_claims), runs)
        asked = more
        for claim in open_claims:
            looks[claim] = look, _most_seeds(asked, open_, claim)

        figure_data = fetch(asked)

    return figure_data, looks


def undecided(figure: Figure, data: Data, claims: Mapping[str, Claim]) -> list[Verdict]:
    """Return the verdicts of a figure that want more seeds."""
    verdicts = [sure(verdict, claims) for verdict in figure.claims(data)] if data.records else []
    return [verdict for verdict in verdicts if verdict.verdict == FEW]


def _most_seeds(asked: Asked, open_: Mapping[str, Sequence[Verdict]], claim: str) -> int:
    """Return how many seeds have the scenarios with the most, of those that a claim needs."""
    counts = Counter(
        scenario.model_copy(update={"seed": 0}).model_dump_json()
        for name, verdicts in open_.items()
        for verdict in verdicts
        if verdict.claim == claim
        for scenario in asked[name]
        if verdict.needs(scenario)
    )
    return max(counts.values(), default=0)
