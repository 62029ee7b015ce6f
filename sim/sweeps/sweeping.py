"""Many runs: in this process, in processes on this machine, or on a Dask cluster.

Finished runs are kept at once. Only this process writes to the store, so workers need no common
file system.
"""

import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.records.naming import named
from fattree.records.record import Record
from sim.errors import FailedRunsError, SimulationError, SweepError
from sim.runs import engine
from sim.runs.results import Result
from sim.sweeps.accounts import refuse_impossible
from sim.sweeps.cluster import connected
from sim.sweeps.cost import Cost, cost, packet_hops, processes
from sim.sweeps.model_version import source_version
from sim.sweeps.run_frames import flow_frame
from sim.sweeps.store import Store, run_key

if TYPE_CHECKING:
    from distributed import Client

Run: TypeAlias = Callable[[Scenario], Record]
# Called with the number of finished runs, and of all runs.
Report: TypeAlias = Callable[[int, int], None]
# Called with the cost of the work.
Expect: TypeAlias = Callable[[Cost], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that ended without a record, and why."""

    scenario: Scenario
    message: str
    # For its settings, not for an event of the run.
    is_refused: bool = False

    def __str__(self) -> str:
        return f"{self.scenario.balancer}, seed {self.scenario.seed}: {self.message}"


CHANGED = "a file that it reads has changed since the sweep began: sweep again"

Outcome: TypeAlias = Record | Failure
Outcomes: TypeAlias = Generator[tuple[str, Outcome], None, None]


def simulate(
    scenario: Scenario,
    threads: int = 1,
    flows: Path | None = None,
    on_progress: engine.OnProgress | None = None,
) -> Record:
    """Run one scenario in the simulator; a folder `flows` gets a file with a row for each flow.

    Raises PhysicsError for a run that does not add up.
    """
    result = engine.run(scenario, threads=threads, on_progress=on_progress)
    refuse_impossible(result)
    return recorded(result, flows)


def recorded(result: Result, flows: Path | None) -> Record:
    """Return a run's record, with its flows kept in a folder, if any."""
    if flows:
        flow_frame(result).write_parquet(flows / flow_file(result.scenario))

    return result.record


def flow_file(scenario: Scenario) -> str:
    """Return the name of the file that keeps a run's flows."""
    return f"{run_key(scenario)}.parquet"


def silent(finished: int, total: int) -> None:
    """Report nothing."""


def unmoved(cost: Cost) -> None:
    """Expect nothing."""


def sweep(
    scenarios: Iterable[Scenario],
    *,
    store: str | Path | None = None,
    jobs: int | None = 1,
    scheduler: str | None = None,
    run: Run = simulate,
    kind: type[Record] = Record,
    report: Report = silent,
    watch: engine.OnProgress | None = None,
    expect: Expect = unmoved,
) -> list[Record]:
    """Return the record of every scenario, in their order; runs in `store` are not run again.

    `jobs` processes on this machine run them (1: this process; None: as many as there are
    processors, 1 for short runs), or the workers of a Dask `scheduler` ("tcp://host:port").
    `report(finished, total)` is called at the start and after every run, `watch(share)` with the
    share of the work that is done, also within a run that this process makes: then `run` takes
    `on_progress`. `expect(cost)` first gets the rough cost of the work. Runs that fail do not stop
    the others: SweepError comes at the end. `run` must be importable by name where it runs
    elsewhere, and return records of `kind`. Raises StoreError.
    """
    # Equal but for their names have equal keys: computed once, and named again at the end.
    key_of = partial(run_key, of_model=store is not None)
    keyed = [(key_of(scenario), scenario) for scenario in scenarios]
    distinct = dict(keyed)
    failures: list[Failure] = []

    with Store(store, kind=kind) if store else nullcontext() as kept:
        if kept:
            kept.want(distinct)

        records = kept.find(distinct) if kept else {}
        report(len(records), len(distinct))
        pending = {key: scenario for key, scenario in distinct.items() if key not in records}
        share = _Share(pending, watch)
        if watch:
            expect(cost(pending.values()))

        # Closed here, not when it is collected: processes end before the store is closed.
        with (
            _telling_what_is_kept(store, records, len(distinct)),
            closing(
                _outcomes(pending, run, jobs or processes(pending.values()), scheduler, share)
            ) as outcomes,
        ):
            for key, outcome in outcomes:
                share.finish(key)
                # It is unknown which of a file's two contents the run has read.
                if key_of(distinct[key]) != key:
                    outcome = Failure(distinct[key], CHANGED)
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                else:
                    records[key] = outcome
                    if kept:
                        kept.add(distinct[key], outcome)

                report(len(records) + len(failures), len(distinct))

    _refuse(failures, len(distinct))
    return [records[key].model_copy(update=named(scenario)) for key, scenario in keyed]


@contextmanager
def _telling_what_is_kept(
    store: str | Path | None, records: Mapping[str, Record], total: int
) -> Iterator[None]:
    """Add a message to a Ctrl-C: the finished runs and their store, or that none is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if not (store or records):
            raise

        done = f"{len(records)} of {total} runs are"
        raise KeyboardInterrupt(
            f"{done} kept in {store}; the same command goes on"
            if store
            else f"{done} finished, and lost; `ofan sim sweep --store FILE` keeps them"
        ) from None


class _Share:
    """Reports the done share of the pending work, by the expected cost of runs."""

    def __init__(
        self, pending: Mapping[str, Scenario], watch: engine.OnProgress | None = None
    ) -> None:
        self._watch = watch
        # Without a watcher, traffic need not be read.
        self._costs = (
            {key: packet_hops(scenario) for key, scenario in pending.items()} if watch else {}
        )
        self._total = max(1, sum(self._costs.values()))
        self._done = 0

    def begin(self) -> None:
        """Report that work begins now."""
        if self._watch:
            self._watch(0.0)

    def finish(self, key: str) -> None:
        """Tell that a run is done."""
        if self._watch:
            self._done += self._costs[key]
            self._watch(self._done / self._total)

    def watched(self, run: Run, key: str) -> Run:
        """Return a function that runs a scenario and reports its progress."""
        watch = self._watch
        if watch is None:
            return run

        cost = self._costs[key]
        # A caller with `watch` gives a run that takes it (`sweep`).
        telling: Callable[..., Record] = run
        return partial(
            telling, on_progress=lambda part: watch((self._done + part * cost) / self._total)
        )


def _refuse(failures: list[Failure], total: int) -> None:
    if failures and total == 1:
        raise (SweepError if failures[0].is_refused else FailedRunsError)(failures[0].message)
    if failures and len(failures) == total and all(failure.is_refused for failure in failures):
        raise SweepError(f"all {total} runs are refused; {failures[0]}")
    if failures:
        raise FailedRunsError(f"{len(failures)} of {total} runs failed; {failures[0]}")


def attempt(run: Run, scenario: Scenario) -> tuple[str, Outcome]:
    """Run a scenario, here or on a worker: return the hash of the model's files, and the outcome.

    Failures are outcomes too: a sweep reports all of them at its end.
    """
    try:
        return source_version(), run(scenario)
    except (FabricError, SimulationError) as error:
        return source_version(), Failure(
            scenario, str(error), is_refused=isinstance(error, FabricError)
        )
    except MemoryError as error:
        # numpy describes the array's type at length.
        said = ["out of memory", *filter(None, [str(error).partition(" for an array")[0]])]
        return source_version(), Failure(scenario, ": ".join(said))
    except Exception as error:  # one defect must not end a sweep of days
        return source_version(), Failure(
            scenario, f"{type(error).__name__}: {error} ({_place(error)})"
        )


def _place(error: BaseException) -> str:
    """Return the file and line on which an unexpected error was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _outcomes(
    pending: Mapping[str, Scenario], run: Run, jobs: int, scheduler: str | None, share: _Share
) -> Outcomes:
    """Yield the outcomes of scenarios, as they come."""
    if scheduler is None and (jobs == 1 or len(pending) <= 1):
        share.begin()
        for key, scenario in pending.items():
            yield key, attempt(share.watched(run, key), scenario)[1]
    elif pending:
        with connected(min(jobs, len(pending)), scheduler) as client:
            share.begin()
            yield from distributed(client, pending, run)


def distributed(client: "Client", pending: Mapping[str, Scenario], run: Run) -> Outcomes:
    """Yield the outcomes of scenarios, by key, that a cluster's workers run, as they come."""
    from distributed import as_completed

    # Not pure: Dask must not reuse a result that it remembers from another sweep.
    futures = client.map(attempt, [run] * len(pending), list(pending.values()), pure=False)
    keys = dict(zip(futures, pending, strict=True))
    completed = as_completed(futures, loop=client.loop)
    # The cluster releases a result with the last reference to its future, in the loop below.
    del futures

    try:
        for future in completed:
            key = keys.pop(future)
            yield key, _outcome(future, pending[key])
    finally:
        # Runs that have not begun are cancelled, and running ones end without a waiting process.
        if keys and client.status == "running":
            client.cancel(list(keys), force=True)


def _outcome(future: Any, scenario: Scenario) -> Outcome:
    from distributed import KilledWorker

    if future.cancelled():
        raise FailedRunsError("the scheduler is gone")

    error = future.exception()
    if isinstance(error, KilledWorker):
        return Failure(scenario, "its worker died several times (out of memory?)")
    if error is not None:
        raise error

    # Its result would be kept under our key, as if our model had given it.
    version, outcome = future.result()
    if version != source_version():
        raise SweepError("a worker runs another version of the model; install the same one there")

    assert isinstance(outcome, Record | Failure)
    return outcome
