"""Results of many runs: rows and files, swept keys beside the record, and a table for people."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from fattree.experiment.model import Scenario
from fattree.files.whole_file import write_whole
from fattree.policies import slug_of
from fattree.records.record import (
    FLOW_TIMES,
    Record,
    filled,
    flat,
    flow_times,
    rare_counts,
    rare_legend,
    row,
    sums,
    times_of_jobs,
)
from fattree.records.tables import Folding
from fattree.units import PS_PER_MS, PS_PER_US, time_unit
from sim.errors import SimulationError
from sim.sweeps.store import plain

Run = tuple[Scenario, Record]
Runs = Sequence[Run]
LEGEND = (
    "p50 to p99.9: flows' times, each from when it could start. max queue: of any switch port at"
    " any time, mean queue: over switch ports and time, in packets: bytes over a data packet's."
    " drops: at full queues, or without a port to go to, lost: at failed links, both of all seeds."
    " ±: standard deviation over seeds."
)

# A group of averaged records: swept values, the load balancer, and the built-in that it is like.
Group = tuple[tuple[str, ...], str, str]
# A table averages over seeds, and load balancers have a column of their own.
NAMING = {"name", "policy", "program", "host_rule", "seed"}
TOPOLOGY = "fabric.topology"
OF_JOBS = "jobs."


def rows(runs: Runs) -> list[dict[str, Any]]:
    """Return a row per run: its record, and each key that differs between runs and is not in it."""
    # Most swept keys are in the record under the key's last part: k, message_bytes.
    keys = [key for key in _differing(runs) if not _is_in_record(key)]
    return [{**row(record), **values_of(scenario, keys)} for scenario, record in runs]


def _is_in_record(key: str) -> bool:
    # Of several jobs a record has only their common values.
    return not key.startswith(OF_JOBS) and key.rpartition(".")[2] in Record.model_fields


def json_rows(runs: Runs) -> list[dict[str, Any]]:
    """Return the rows as JSON values; an infinite `convergence_rtt` is null."""
    # JSON has no infinity. pydantic writes null; the output of Python's json is no JSON.
    return [
        {**row, **json.loads(record.model_dump_json())}
        for row, (_, record) in zip(rows(runs), runs, strict=True)
    ]


def _differing(runs: Runs) -> list[str]:
    """Return the dotted keys in which scenarios differ, but for name, load balancer and seed."""
    scenarios = [dict(_dotted(plain(scenario, without=NAMING))) for scenario, _ in runs]
    return [
        key
        for key in dict.fromkeys(key for scenario in scenarios for key in scenario)
        # A file's name is a column, not its content.
        if key != "agent_packet.text"
        and any(table.get(key) != scenarios[0].get(key) for table in scenarios)
    ]


def _dotted(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        elif key == "jobs":
            # By their names, as in sweeps and on the command line.
            for job in value:
                yield from _dotted(job, f"{OF_JOBS}{job['name']}.")
        else:
            yield f"{prefix}{key}", json.dumps(value) if isinstance(value, list) else value


def values_of(scenario: Scenario, keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of dotted keys."""
    values = dict(_dotted(plain(scenario)))
    return {key: values.get(key) for key in keys}


def csv_rows(runs: Runs) -> list[dict[str, Any]]:
    """Return the rows for CSV."""
    return [flat(row) for row in rows(runs)]


def write_parquet(runs: Runs, path: Path) -> None:
    """Write the rows as Parquet."""
    import polars as pl

    # A column may begin with hundreds of whole numbers, or nulls: types are those of all rows.
    frame = pl.DataFrame(filled(rows(runs)), infer_schema_length=None, strict=False)
    # Polars' own writing hides errors of the file system.
    data = io.BytesIO()
    frame.write_parquet(data)
    write_whole(path, data.getvalue())


def fitting(runs: Runs, balancers: Sequence[str], width: int) -> tuple[Folding, list[str]]:
    """Return the table, and lines with its cases where swept keys leave no room in it.

    Keys are repeated in front of every block of columns, so that many of them, or one that is a
    list of tables, would be all that one sees.
    """
    table = results_table(runs, balancers)
    if table.keys == 1 or table.width_of_keys() <= width // 2:
        return table, []

    keys = shown_keys(runs)
    cases = dict.fromkeys(values for values, _, _ in _groups(runs, keys))
    lines = [
        f"case {number}: " + ", ".join(map(" ".join, zip(_headings(keys), values, strict=True)))
        for number, values in enumerate(cases, start=1)
    ]
    return results_table(runs, balancers, numbered=True), lines


def legend(runs: Runs) -> str:
    """Return the meanings of the table's columns."""
    return LEGEND + rare_legend(record for _, record in runs)


def results_table(runs: Runs, balancers: Sequence[str] = (), numbered: bool = False) -> Folding:
    """Return mean ± standard deviation over seeds for every load balancer and swept value.

    Queues are in packets, drops in sum. Rows of equal values have the order of `balancers`: of some
    runs of a sweep may not be finished. With `numbered`, values are a number (`fitting`).
    """
    keys = shown_keys(runs)
    unit, unit_ps = time_unit([record.cct_ps for _, record in runs])
    rare = rare_counts(record for _, record in runs)
    named = [*(["case"] if numbered else _headings(keys)), "load balancer"]
    table = Folding(
        *named,
        "seeds",
        f"CCT ({unit})",
        "over bound (%)",
        *(f"{name} ({unit})" for name in FLOW_TIMES),
        "max queue",
        "mean queue",
        "drops",
        "lost",
        *rare,
        keys=len(named),
        texts=range(len(named)),
    )

    groups = _groups(runs, keys)
    labels = dict.fromkeys([*balancers, *(label for _, label, _ in groups)])
    rank = {label: number for number, label in enumerate(labels)}
    cases = dict.fromkeys(values for values, _, _ in groups)
    places = {values: index for index, values in enumerate(cases)}
    for group in sorted(groups, key=lambda group: (places[group[0]], rank[group[1]])):
        (values, label, _), records = group, groups[group]
        case = (str(places[values] + 1),) if numbered else values
        table.add_row(*case, label, *_cells(records, unit_ps), *sums(records, rare))

    return table


def _headings(keys: Sequence[str]) -> list[str]:
    return [heading(key) for key in keys]


def heading(key: str) -> str:
    """Return a dotted key as a column is called."""
    if key.startswith(OF_JOBS):
        return key.removeprefix(OF_JOBS).replace(".collective.", ".")

    return key.rpartition(".")[2]


def left_out(balancers: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return the load balancers of these names, which a figure leaves out.

    Raises SimulationError for a name that no run has, and where nothing is left to draw.
    """
    ran = list(dict.fromkeys(balancers))
    missing = set(map(slug_of, names))
    if strange := missing - set(ran):
        raise SimulationError(
            f"--leave-out {min(strange)}: no run has this load balancer, only {', '.join(ran)}"
        )

    if missing and missing == set(ran):
        raise SimulationError("--leave-out leaves no load balancer for the figure")

    return missing


def shown_keys(runs: Runs) -> list[str]:
    """Return the keys that differ, without keys of the fabric that a topology file implies."""
    keys = _differing(runs)
    values = [values_of(scenario, keys) for scenario, _ in runs]
    # Rows are in the order of runs: first the key that changes least often between neighbours.
    keys.sort(key=lambda key: sum(before[key] != after[key] for before, after in pairwise(values)))
    if TOPOLOGY not in keys:
        return keys

    return [key for key in keys if key == TOPOLOGY or not _is_of_topology(key, runs)]


def _is_of_topology(key: str, runs: Runs) -> bool:
    pairs = {tuple(values_of(scenario, [TOPOLOGY, key]).values()) for scenario, _ in runs}
    return key.startswith("fabric.") and len(pairs) == len({name for name, _ in pairs})


def _groups(runs: Runs, keys: Sequence[str]) -> dict[Group, list[Record]]:
    groups: dict[Group, list[Record]] = {}
    for scenario, record in runs:
        values = tuple(in_words(value) for value in values_of(scenario, keys).values())
        groups.setdefault((values, scenario.balancer_label, scenario.policy), []).append(record)

    return groups


def in_words(value: Any) -> str:
    """Return a key's value as a table has it; a run without the key has a dash."""
    if value is None:
        return "-"
    if isinstance(value, str) and value.startswith("[{"):
        return "; ".join(_said(table) for table in json.loads(value))

    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _said(table: dict[str, Any]) -> str:
    """Return a table of a list as in an experiment's file, without keys that are not set."""
    return " ".join(f"{key} = {json.dumps(of)}" for key, of in table.items() if of is not None)


def _cells(records: Sequence[Record], unit_ps: int) -> list[str]:
    return [
        str(len(records)),
        _mean([record.cct_ps / unit_ps for record in records], 2),
        _mean([100 * record.increase for record in records], 2),
        *flow_times(records, unit_ps),
        _mean([record.max_queue_packets for record in records], 1),
        _mean([record.mean_queue_packets or 0 for record in records], 2),
        *sums(records, ["dropped", "lost_to_failure"]),
    ]


def _mean(values: Sequence[float], digits: int) -> str:
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def workload_lines(runs: Runs) -> list[str]:
    """Return a line for each training step, and lines of jobs' times over all seeds."""
    lines: list[str] = []
    # As the table has it, so that one finds the number again.
    unit, unit_ps = time_unit([record.cct_ps for _, record in runs])
    keys = shown_keys(runs)
    for scenario, record in runs:
        if record.compute_ps:
            who = _case(scenario, keys, f"seed {record.seed}")
            # Times of the whole step: divided times are multiplied again, latencies with them.
            whole_ps = PS_PER_MS / record.scale
            step, computed = record.cct_ps / whole_ps, record.compute_ps / whole_ps
            run_cct = f"{record.cct_ps / unit_ps:.2f} {unit}"
            scaled = f" ({record.scale} times the run's CCT, {run_cct})" if record.scale > 1 else ""
            lines.append(
                f"{who}: whole step {step:,.3f} ms{scaled}, computations alone {computed:,.3f} ms, "
                f"exposed communication {step - computed:,.3f} ms ({1 - computed / step:.1%}); "
                f"peak memory of the simulator {record.max_rss_bytes / 1e9:.1f} GB"
            )

    return [*lines, *_job_lines(runs)]


def _case(scenario: Scenario, keys: Sequence[str], seeds: str) -> str:
    """Return a load balancer, the values of swept keys with their names, and its seeds."""
    values = values_of(scenario, keys).items()
    swept = [f"{heading(key)} {in_words(value)}" for key, value in values]
    return ", ".join([scenario.balancer_label, *swept, seeds])


def _job_lines(runs: Runs) -> Iterator[str]:
    """Yield a line for each load balancer and case: the mean of each job's time over the seeds."""
    cases: dict[str, list[Run]] = {}
    for scenario, record in runs:
        if record.jobs_ps:
            case = json.dumps(plain(scenario, without={"seed", "name"}))
            cases.setdefault(case, []).append((scenario, record))

    keys = shown_keys(runs)
    for alike in cases.values():
        times: dict[str, list[float]] = {}
        for _, record in alike:
            for name, time_ps in times_of_jobs(record.jobs_ps).items():
                times.setdefault(name, []).append(time_ps / PS_PER_US)

        scenario, record = alike[0]
        seeds = f"seed {record.seed}" if len(alike) == 1 else f"mean of {len(alike)} seeds"
        means = ", ".join(f"{name} {mean(values):,.3f} µs" for name, values in times.items())
        yield f"{_case(scenario, keys, seeds)}: {means}"
