"""The simulator of the paper's authors: completion times of permutations (authors.toml)."""

from typing import Any

import numpy as np
import pytest

from fattree.demand.bounds import Timing, ack_times_ps
from fattree.experiment.model import Scenario
from sim import Result, run
from tests.outside.tables import name_of, rows

MIB = 1 << 20
WIRE = {"header_bytes": 82, "ack_bytes": 84, "gap_bytes": 0}
CCT = rows("authors.toml", "cct")
COARSE = rows("authors.toml", "coarse")
SHORT = [row for row in CCT if row["message_bytes"] == MIB]
LONG = [row for row in CCT if row["message_bytes"] > MIB]


def mean_us(row: dict[str, Any]) -> float:
    """Return the mean CCT of ten permutations."""
    shared = {
        "policy": row["policy"],
        "packets": WIRE,
        "collective": {"message_bytes": row["message_bytes"]},
        "load_balancer": row.get("load_balancer", {}),
    }
    runs = [run(Scenario.model_validate({**shared, "seed": seed})) for seed in range(1, 11)]
    return float(np.mean([result.sending_cct_ps for result in runs]) / 1e6)


def fits(row: dict[str, Any]) -> None:
    room = max(2 * row.get("deviation", 0), 0.015 * row["us"])
    assert mean_us(row) == pytest.approx(row["us"], abs=room)


@pytest.mark.parametrize("row", SHORT, ids=name_of)
def test_a_permutation_takes_as_long_as_in_the_authors_simulator(row: dict[str, Any]) -> None:
    fits(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", LONG, ids=name_of)
def test_a_longer_one_does_too(row: dict[str, Any]) -> None:
    fits(row)


def coarse(policy: str) -> list[Result]:
    """Return runs of 1 MiB with buffers of 192 packets, on ten permutations."""
    shared = {"policy": policy, "packets": WIRE, "fabric": {"queue_bytes": 192 * 4178}}
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
        one.sending_cct_ps - other.sending_cct_ps
        for one, other in zip(flowlets, subflows, strict=True)
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
    least, most = row["percent"]
    assert least <= 100 * np.mean([result.record.sending_increase for result in runs]) <= most


@pytest.mark.slow
@pytest.mark.parametrize("row", rows("authors.toml", "failures"), ids=name_of)
def test_failures_that_nobody_learns_of_cost_as_much(row: dict[str, Any]) -> None:
    over = []
    for seed in range(1, 21):
        failures = {"rate": 0.01, "convergence_rtt": float("inf")}
        result = run(
            Scenario.model_validate({"policy": row["policy"], "seed": seed, "failures": failures})
        )
        # Between pods all gaps are one: a permutation's hosts send one message each.
        timing = Timing.of(result.scenario, data_slot_ps=int(result.gaps.max()))
        bound_ps = ack_times_ps(timing, int(result.flows.packets.max()))[-1]
        over.append(result.sending_cct_ps / bound_ps - 1)
    assert 100 * np.mean(over) == pytest.approx(row["percent"], abs=2)
