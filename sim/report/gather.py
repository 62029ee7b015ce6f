"""Run what the figures need: every distinct scenario once, cheap and early seeds first, each kept as soon as it is finished."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from fabric.experiment import Scenario
from fabric.record import Record
from fabric.traffic import message_bytes, packet_count
from sim import sweeps
from sim.figures.figure import Data, Figure, Measured, Preset
from sim.store import Store, run_key

HOPS = 12
PLAIN = "runs"

# report(what, done, total): in packet-hops, roughly.
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


def batches(figures: Iterable[Figure], preset: Preset, folder: Path) -> dict[str, Batch]:
    """Return the figures' scenarios by the function that runs them, without repetition, early seeds and small runs first."""
    runs: dict[str, sweeps.Run] = {}
    wanted: dict[str, dict[str, Scenario]] = {}
    for figure in figures:
        name = figure.measure_id or PLAIN
        runs[name] = figure.measure or sweeps.simulate
        wanted.setdefault(name, {}).update((run_key(scenario), scenario) for scenario in figure.scenarios(preset))
    return {
        name: Batch(
            store=folder / f"{name}.sqlite",
            run=runs[name],
            kind=Record if name == PLAIN else Measured,
            scenarios=tuple(sorted(wanted[name].values(), key=lambda scenario: (scenario.seed, packet_hops(scenario)))),
        )
        for name in runs
        if wanted[name]
    }


def packet_hops(scenario: Scenario) -> int:
    """Return roughly how many packet-hops a run has: what it costs."""
    hosts = scenario.tree.hosts
    flows = {"all_to_all": hosts * (hosts - 1), "pairs": len(scenario.collective.pairs)}.get(scenario.collective.matrix, hosts)
    return flows * packet_count(scenario, message_bytes(scenario)) * HOPS


def compute(found: dict[str, Batch], machines: Machines, progress: Progress) -> int:
    """Run what the stores do not hold yet; return how many runs that were. Raises SweepError at the end if some failed."""
    pending = {name: _pending(batch) for name, batch in found.items()}
    total = sum(packet_hops(scenario) for missing in pending.values() for scenario in missing)
    before = 0
    for name, batch in found.items():
        costs = [0, *accumulate(packet_hops(scenario) for scenario in pending[name])]
        kept = len(batch.scenarios) - len(pending[name])

        def report(
            finished: int, _of: int, name: str = name, costs: Sequence[int] = costs, kept: int = kept, before: int = before
        ) -> None:
            progress(name, before + costs[finished - kept], total)

        if pending[name]:
            sweeps.sweep(
                batch.scenarios,
                store=batch.store,
                jobs=machines.jobs,
                scheduler=machines.scheduler,
                run=batch.run,
                kind=batch.kind,
                report=report,
            )
        before += costs[-1]
    return sum(map(len, pending.values()))


def _pending(batch: Batch) -> list[Scenario]:
    keys = [run_key(scenario) for scenario in batch.scenarios]
    with Store(batch.store, kind=batch.kind) as store:
        known = store.find(keys)
    return [scenario for key, scenario in zip(keys, batch.scenarios, strict=True) if key not in known]


def collect(figures: Iterable[Figure], preset: Preset, folder: Path) -> dict[str, Data]:
    """Return every figure's data from the stores; runs that are not there yet are left out."""
    return {figure.name: _data(figure, preset, folder) for figure in figures}


def _data(figure: Figure, preset: Preset, folder: Path) -> Data:
    scenarios = tuple(figure.scenarios(preset))
    keys = [run_key(scenario) for scenario in scenarios]
    path = folder / f"{figure.measure_id or PLAIN}.sqlite"
    records: dict[str, Record] = {}
    if scenarios and path.is_file():
        with Store(path, kind=Measured if figure.measure else Record) as store:
            records = store.find(dict.fromkeys(keys))
    kept = [(scenario, records[key]) for key, scenario in zip(keys, scenarios, strict=True) if key in records]
    return Data(
        preset=preset,
        scenarios=tuple(scenario for scenario, _ in kept),
        records=tuple(record.model_copy(update={"name": scenario.name}) for scenario, record in kept),
        missing=len(scenarios) - len(kept),
    )
