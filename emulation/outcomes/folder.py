"""The folder that a run leaves: the experiment, results as Parquet, a log, plots."""

import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emulation.errors import EmulationError
from emulation.outcomes.outcome import Outcome
from emulation.outcomes.switch_state import state_rows
from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS, Counts, total
from fattree.experiment.model import Experiment, with_files
from fattree.records.frames import flow_frame, port_frame
from fattree.records.naming import scenario_hash
from fattree.records.record import Queues, Record, run_record, table
from fattree.routes.bounds import bound_ps, sending_bound_ps
from fattree.shape.topology import SWITCH_LAYERS
from fattree.texts.experiment_writer import experiment_toml
from sim.sweeps.own_folder import locked

if TYPE_CHECKING:
    import polars as pl

RESULTS = "results.parquet"
FLOWS = "flows.parquet"
PORTS = "ports.parquet"
QUEUES = "queues.parquet"
REGISTERS = "registers.json"
EXPERIMENT = "experiment.toml"
LOG = "run.log"
# The beginning of the name of a folder in which a run writes its results.
FRESH = ".ofan-new-"


def record(outcome: Outcome, network: str) -> Record:
    """Return the row of a run in the schema that all networks share."""
    demand, scenario, flows = outcome.demand, outcome.scenario, outcome.demand.flows
    ports = outcome.ports
    means = [outcome.mean_queue_bytes(layer) for layer in SWITCH_LAYERS]
    queues = Queues(
        longest=[outcome.max_queue_bytes(layer) for layer in SWITCH_LAYERS]
        if outcome.reports_queues
        else None,
        mean=means,
        mean_of_all=outcome.mean_queue_bytes(),
        utilisation=[outcome.utilisation(layer) for layer in SWITCH_LAYERS],
    )

    # Some packets are dropped or lost at no port. Packets that hosts sent and that switches' ports
    # count are the hops of all links.
    counts = Counts(
        **total(SENDER_COUNTERS, outcome.flows)
        | total(PORT_COUNTERS, ports)
        | {
            "dropped": outcome.accounts.dropped + outcome.accounts.unrouted,
            "lost_to_failure": outcome.accounts.lost,
            "packet_hops": outcome.accounts.sent
            - outcome.accounts.probes
            + sum(port.packets for port in ports),
            "redraws": demand.events.redraws,
            "host_paused_ps": outcome.host_paused_ps,
            "unroutable": outcome.accounts.unrouted,
        }
    )

    return run_record(
        scenario,
        network,
        flows,
        cct_ps=outcome.cct_ps,
        sending_cct_ps=flows.longest_sending_ps(
            np.array([flow.first_ps for flow in outcome.flows]),
            np.array([flow.done_ps for flow in outcome.flows]),
        ),
        fct_ps=np.array([flow.fct_ps for flow in outcome.flows]),
        done_ps=np.array([flow.done_ps for flow in outcome.flows]),
        bound_ps=bound_ps(scenario, flows, demand.gaps_ps),
        sending_bound_ps=sending_bound_ps(scenario, flows, demand.gaps_ps),
        queues=queues,
        counts=counts,
        cpu_s=outcome.cpu_seconds,
        policy=outcome.own_program,
    )


def flows_of(outcome: Outcome) -> "pl.DataFrame":
    """Return one row per flow."""
    names = (
        "source",
        "destination",
        "packets",
        "transmissions",
        "planned_ps",
        "start_ps",
        "first_ps",
        "done_ps",
    )
    return flow_frame(outcome.scenario, outcome.policy, **_columns(outcome.flows, names))


def ports_of(outcome: Outcome) -> "pl.DataFrame":
    """Return one row per output port of every switch."""
    names = ("packets", "bytes", "max_queue_bytes", "mean_queue_bytes")
    counts = _columns(outcome.ports, PORT_COUNTERS)
    return port_frame(
        outcome.scenario, outcome.policy, counts=counts, **_columns(outcome.ports, names)
    )


def _columns(rows: Sequence[object], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}


def queues_of(outcome: Outcome) -> "pl.DataFrame":
    """Return the longest queue per layer over time, nothing without samples."""
    import polars as pl

    samples = outcome.samples
    run = {**_run(outcome), "scenario_hash": scenario_hash(outcome.scenario, outcome.policy)}
    rows = [
        {**run, "time_ps": time_ps, "layer": layer, "max_queue_bytes": longest}
        for time_ps, by_layer in zip(samples.times_ps, samples.bytes, strict=True)
        for layer, longest in zip(SWITCH_LAYERS, by_layer, strict=True)
    ]
    return pl.DataFrame(rows)


def _run(outcome: Outcome) -> dict[str, Any]:
    return {"policy": outcome.policy, "seed": outcome.scenario.seed}


@contextmanager
def new_folder(chosen: Path | None, default: Path, force: bool = False) -> Iterator[Path]:
    """Claim a results folder before anything runs, and yield it; earlier results stay.

    No other run gets the folder until the end. Where the default has results, or another run has
    claimed it, the next number is taken (`demo_2`). A `chosen` folder with results is refused
    unless `force` replaces them; that of a run that has not ended is always refused. Folders that
    stay empty are removed. Raises EmulationError, one line, also where the folder cannot be
    written.
    """
    target = chosen or default
    is_kept = chosen is not None and chosen.exists()
    missing = [path for path in target.parents if not path.exists()]
    with ExitStack() as claims:
        if chosen or force:
            folder = _claimed(target, claims, force)
        else:
            folder = next(path for path in _numbered(default) if _is_claimed(path, claims))

        try:
            # Whether it can be written shows only when it is: rights are not all.
            with writing(folder), tempfile.TemporaryFile(dir=folder):
                _remove_leftovers(folder)

            yield folder
        finally:
            # Of folders beside it, another run may have claimed each since this one began.
            for path in missing if is_kept else (folder, *missing):
                with suppress(OSError):
                    path.rmdir()


def _claimed(folder: Path, claims: ExitStack, force: bool) -> Path:
    """Claim the folder that the user wants; raises EmulationError where another has it."""
    if not _has_claim(folder, claims, may_exist=True):
        raise EmulationError(
            f"{folder} is the folder of a run that has not ended: choose another --output"
        )

    # Now that no other run can add results.
    if not force and _has_results(folder):
        raise EmulationError(
            f"{folder} has results already: choose another --output, or --force replaces them"
        )

    return folder


def _is_claimed(folder: Path, claims: ExitStack) -> bool:
    """Claim a folder without results; return whether it is ours now."""
    if _has_results(folder):
        return False

    with ExitStack() as claim:
        # Looked at again: the run that had it may just have ended.
        if _has_claim(folder, claim, may_exist=False) and not _has_results(folder):
            claims.push(claim.pop_all())
            return True

    return False


def _has_claim(folder: Path, claims: ExitStack, may_exist: bool) -> bool:
    """Make a folder where there is none, and lock it; return whether no other run has it.

    On a file system without locks, whether it `may_exist` already decides.
    """
    with writing(folder):
        try:
            folder.mkdir(parents=True)
            is_new = True
        except FileExistsError:
            if not folder.is_dir():
                raise

            is_new = False

    try:
        return claims.enter_context(locked(folder.resolve()))
    except OSError:
        return is_new or may_exist


def _remove_leftovers(folder: Path) -> None:
    """Remove the results that killed runs were writing into a claimed folder."""
    # The demo has a folder for each of its experiments.
    for pattern in (f"{FRESH}*", f"*/{FRESH}*"):
        for leftover in folder.glob(pattern):
            # A locked folder is another run's, which has claimed a folder in this folder.
            with suppress(OSError), locked(leftover) as is_nobodys:
                if is_nobodys:
                    shutil.rmtree(leftover, ignore_errors=True)


def _numbered(default: Path) -> Iterator[Path]:
    """Yield a folder, then with numbers from 2 on."""
    yield default
    yield from (default.with_name(f"{default.name}_{number}") for number in count(2))


def _has_results(folder: Path) -> bool:
    # The demo has a folder for each of its experiments. A part that a killed run has left is none.
    return any(
        not path.parent.name.startswith(FRESH)
        for name in (RESULTS, f"*/{RESULTS}")
        for path in folder.glob(name)
    )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise EmulationError, one line, where a results folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise EmulationError(
            f"cannot write results to {folder}: {error.strerror or error}"
        ) from None


@contextmanager
def complete(folder: Path) -> Iterator[Path]:
    """Yield a folder for files that appear in the results folder together, or not at all."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=FRESH, dir=folder) as fresh, ExitStack() as lock:
            # A file system without locks keeps the remains of killed runs.
            with suppress(OSError):
                lock.enter_context(locked(fresh))

            yield Path(fresh)

            # Written first, renamed then, in the same file system: a rename is all or nothing.
            # The file that marks the results as complete comes last.
            for path in sorted(Path(fresh).iterdir(), key=lambda path: path.name == RESULTS):
                path.replace(folder / path.name)


def kept_toml(experiment: Experiment) -> str:
    """Return an experiment as TOML that can be run again from the results folder."""
    # A matrix's file was found from where the user stood, which is somewhere else next time.
    return experiment_toml(
        with_files(experiment, {file: str(Path(file).absolute()) for file in experiment.files})
    )


def write_folder(
    folder: Path, experiment: Experiment, outcomes: Sequence[Outcome], records: Sequence[Record]
) -> None:
    """Write everything but the plots; an older run's files of the same names are replaced."""
    import polars as pl

    (folder / EXPERIMENT).write_text(kept_toml(experiment), encoding="utf-8")
    (folder / LOG).write_text(
        "".join(f"{line}\n" for line in log_lines(outcomes)), encoding="utf-8"
    )
    write_parquet(table(records), folder / RESULTS)

    for name, frame_of in ((FLOWS, flows_of), (PORTS, ports_of), (QUEUES, queues_of)):
        frames = [frame for frame in map(frame_of, outcomes) if len(frame)]
        # Real queues are not looked at over time: then there is no file, rather than an empty one.
        if frames:
            # Relaxed: a value that a switch does not report has no type.
            write_parquet(pl.concat(frames, how="vertical_relaxed"), folder / name)

    rows = list(state_rows(outcomes))
    if rows:
        (folder / REGISTERS).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def write_parquet(frame: "pl.DataFrame", path: Path) -> None:
    """Write a table; raises OSError, which Polars' own writing hides."""
    data = io.BytesIO()
    frame.write_parquet(data)
    path.write_bytes(data.getvalue())


def log_lines(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the run log: a JSON object a run, with the hash of its events and its accounts."""
    return [json.dumps(_log_entry(outcome)) for outcome in outcomes]


def _log_entry(outcome: Outcome) -> dict[str, Any]:
    accounts = outcome.accounts
    return {
        **_run(outcome),
        # Large runs at native speed have none.
        "events_sha256": outcome.digest or None,
        "cct_ps": outcome.cct_ps,
        "end_ps": outcome.end_ps,
        "sent": accounts.sent,
        "received": accounts.received,
        "dropped": accounts.dropped,
        "unrouted": accounts.unrouted,
        "lost_to_failure": accounts.lost,
        "in_flight": accounts.in_flight,
        "probes": accounts.probes,
        "switch_packets": outcome.hops,
        "cpu_seconds": round(outcome.cpu_seconds, 3),
    }
