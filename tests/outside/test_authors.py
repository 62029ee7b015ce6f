"""The simulator of the paper's authors: completion times of permutations (authors.toml)."""

from typing import Any

import numpy as np
import pytest

from fattree.demand.bounds import Timing, ack_times_ps
from fattree.experiment.model import Scenario
from sim import Result, run
from tests.outside.tables import name_of, rows, table

WIRE = {"header_bytes": 82, "ack_bytes": 84, "gap_bytes": 0}
QUEUES = {"queue_bytes": 192 * 4178}
ROWS: list[dict[str, Any]] = table("authors.toml", "rows")
COARSE = rows("authors.toml", "coarse")
LONG_BYTES = 4 << 20


def is_quick(row: dict[str, Any]) -> bool:
    """Tell whether a row takes less than a second."""
    return row["message_bytes"] < LONG_BYTES and "matrix" not in row


def agrees(row: dict[str, Any]) -> None:
    """Compare the mean of a row's seeds with theirs, where `mended` with theirs so changed."""
    collective = {
        "matrix": row.get("matrix", "permutation"),
        "message_bytes": row["message_bytes"],
    }
    shared = {
        "policy": row["policy"],
        "packets": WIRE,
        "fabric": QUEUES,
        "collective": collective,
        "load_balancer": row.get("load_balancer", {}),
    }
    seeds = range(1, row["seeds"] + 1)
    runs = [run(Scenario.model_validate({**shared, "seed": seed})) for seed in seeds]
    mean_us, deviation_us = row.get("mended", row["us"])
    room_us = max(2 * deviation_us, 0.01 * mean_us)
    times_us = [result.sending_cct_ps / 1e6 for result in runs]
    assert np.mean(times_us) == pytest.approx(mean_us, abs=room_us)


@pytest.mark.parametrize("row", [row for row in ROWS if is_quick(row)], ids=name_of)
def test_a_permutation_takes_as_long_as_in_the_authors_simulator(row: dict[str, Any]) -> None:
    agrees(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if not is_quick(row)], ids=name_of)
def test_longer_ones_and_all_to_alls_do_too(row: dict[str, Any]) -> None:
    agrees(row)


def coarse(policy: str) -> list[Result]:
    """Return runs of 1 MiB with buffers of 192 packets, on ten permutations."""
    shared = {"policy": policy, "packets": WIRE, "fabric": QUEUES}
    return [run(Scenario.model_validate({**shared, "seed": seed})) for seed in range(1, 11)]


@pytest.mark.parametrize("row", COARSE, ids=name_of)
def test_paths_that_overflow_take_as_long_and_as_many_packets(row: dict[str, Any]) -> None:
    runs = coarse(row["policy"])
    times_us = [result.sending_cct_ps / 1e6 for result in runs]
    error_us = np.hypot(row["deviation"], np.std(times_us, ddof=1)) / np.sqrt(len(runs))
    assert np.mean(times_us) == pytest.approx(row["us"], abs=2 * error_us)
    needed = [result.record.transmissions / result.record.packets for result in runs]
    assert np.mean(needed) == pytest.approx(row["needed"], rel=0.05)


def test_flowlets_take_longer_than_subflows() -> None:
    """In theirs by 9 to 21 us, on each of ten permutations; in the paper as well."""
    flowlets, subflows = coarse("host_flowlet_ar"), coarse("subflow")
    longer = [
        flowlet_run.sending_cct_ps - subflow_run.sending_cct_ps
        for flowlet_run, subflow_run in zip(flowlets, subflows, strict=True)
    ]
    assert np.mean(longer) > 4 * np.std(longer, ddof=1) / np.sqrt(len(longer))


@pytest.mark.parametrize("row", rows("authors.toml", "stale"), ids=name_of)
def test_short_buffers_and_old_readings_cost_as_much(row: dict[str, Any]) -> None:
    shared = {
        "policy": row["policy"],
        "packets": WIRE,
        "fabric": {"queue_bytes": 20 * 4178},
        "load_balancer": {"queue_staleness_ns": 100},
    }
    runs = [run(Scenario.model_validate({**shared, "seed": seed})) for seed in range(1, 11)]
    least, greatest = row["percent"]
    assert least <= 100 * np.mean([result.record.sending_increase for result in runs]) <= greatest


@pytest.mark.slow
@pytest.mark.parametrize("row", rows("authors.toml", "failures"), ids=name_of)
def test_failures_that_nobody_learns_of_cost_as_much(row: dict[str, Any]) -> None:
    over = []
    for seed in range(1, 21):
        failures = {"rate": 0.01, "convergence_rtt": float("inf")}
        result = run(
            Scenario.model_validate({"policy": row["policy"], "seed": seed, "failures": failures})
        )
        # Between pods all gaps are equal: a permutation's hosts send one message each.
        timing = Timing.of(result.scenario, data_slot_ps=int(result.gaps.max()))
        bound_ps = ack_times_ps(timing, int(result.flows.packets.max()))[-1]
        over.append(result.sending_cct_ps / bound_ps - 1)
    assert 100 * np.mean(over) == pytest.approx(row["percent"], abs=2)
