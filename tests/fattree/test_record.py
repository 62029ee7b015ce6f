"""Records of runs: one schema, as JSON and as a data frame."""

import pytest
from pydantic import ValidationError

from fattree.errors import PhysicsError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.records.record import Record, described, refuse_impossible, summary, table

MEASURED = {
    "cct_ps": 17_500_000,
    "bound_ps": 17_056_940,
    "increase": 0.026,
    "max_queue_bytes": 41_580,
    "max_queue_packets": 10.0,
    "mean_queue_packets": 0.5,
    "max_queue_layers": (1.0, 2.0, 3.0, 4.0, 5.0),
    "mean_queue_layers": (0.1, 0.2, 0.3, 0.4, 0.5),
    "utilisation_layers": (0.9, 0.9, 0.9, 0.9, 0.9),
    "dropped": 0,
    "marked": 0,
    "lost_to_failure": 3,
    "transmissions": 32_768,
    "packet_hops": 300_000,
    "redraws": 0,
    "cpu_s": 0.1,
    "max_rss_bytes": 10**8,
}


def record(policy: str = "ofan", seed: int = 1, **changed: object) -> Record:
    case = Scenario(policy=policy, seed=seed)
    return Record.model_validate({**described(case, "sim", 1 << 20, 256), **MEASURED, **changed})


def test_a_record_names_its_run() -> None:
    jsq_record = record("jsq", 4)
    assert (
        jsq_record.policy,
        jsq_record.seed,
        jsq_record.k,
        jsq_record.hosts,
        jsq_record.matrix,
    ) == (
        "jsq",
        4,
        8,
        128,
        "permutation",
    )
    assert (jsq_record.message_bytes, jsq_record.packets, jsq_record.network) == (
        1 << 20,
        256,
        "sim",
    )


def test_json_and_back() -> None:
    assert Record.model_validate_json(record().model_dump_json()) == record()


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(ValidationError):
        record(colour="red")


def test_numbers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ValidationError, match="cct_ps is beyond 64 bits"):
        record(cct_ps=10**400)


def test_a_table_has_one_row_a_run() -> None:
    frame = table([record("ofan"), record("jsq", lost_to_failure=0)])
    assert frame["policy"].to_list() == ["ofan", "jsq"]
    assert set(frame.columns) == set(Record.model_fields)
    assert frame["max_queue_layers"].to_list()[0] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_summary_averages_over_seeds() -> None:
    runs = [
        record("ofan", 1, increase=0.25),
        record("ofan", 2, increase=0.5),
        record("jsq", 1, increase=1.0),
    ]
    rows = summary(runs).to_dicts()
    assert [(row["policy"], row["seeds"], row["increase"]) for row in rows] == [
        ("ofan", 2, 0.375),
        ("jsq", 1, 1.0),
    ]
    assert rows[0]["lost_to_failure"] == 6


def test_a_summary_has_the_order_of_the_runs() -> None:
    runs = [record(slug, seed) for seed in (1, 2) for slug in POLICIES]
    assert summary(runs)["policy"].to_list() == list(POLICIES)


def test_a_run_that_is_faster_than_its_links_is_a_fault_of_ours() -> None:
    refuse_impossible(Scenario(), "sim", cct_ps=10, bound_ps=10)
    refuse_impossible(Scenario(), "mininet", cct_ps=9, bound_ps=10)
    with pytest.raises(PhysicsError, match="seed 1: the run ended after 9 ps, but its links need"):
        refuse_impossible(Scenario(), "sim", cct_ps=9, bound_ps=10)
