"""Scenarios: the numbers that follow from them, and how experiments unfold."""

from typing import Any

import pytest
from pydantic import ValidationError

from fattree.errors import ExperimentError
from fattree.experiment.base import Section
from fattree.experiment.failures import FailureEvent
from fattree.experiment.model import Experiment, Fabric, Failures, Packets, Scenario

DEFAULT = Scenario()


def test_the_papers_times() -> None:
    """800 Gb/s is 10 ps a byte: 4,158 B and 64 B, with gaps of 20 B.

    0.5 us a link (simulator model).
    """
    assert DEFAULT.tx_ps(1) == 10
    assert DEFAULT.slot_ps == 41_780
    assert DEFAULT.ack_slot_ps == 840
    assert DEFAULT.zero_load_rtt_ps == 6_253_320
    assert DEFAULT.bdp_packets == 150


@pytest.mark.parametrize(("rate_gbps", "ps"), [(800, 10), (100, 80), (0.01, 800_000), (3, 2_667)])
def test_transmissions_are_rounded_up(rate_gbps: float, ps: int) -> None:
    assert Scenario(fabric=Fabric(rate_gbps=rate_gbps)).tx_ps(1) == ps


def test_thresholds_stay_when_queues_are_unlimited() -> None:
    assert Scenario(fabric=Fabric(queue_bytes=0)).threshold_bytes == 800_000
    assert Scenario(fabric=Fabric(queue_bytes=9_000)).threshold_bytes == 9_000
    assert Scenario(fabric=Fabric(queue_bytes=9_000, threshold_bytes=50)).threshold_bytes == 50


def test_g_counts_in_zero_load_round_trips() -> None:
    assert Scenario(failures=Failures(convergence_rtt=2)).convergence_ps == 12_506_640
    assert Scenario(failures=Failures(convergence_rtt=float("inf"))).convergence_ps is None


def test_tunnels_lengthen_host_dr_alone() -> None:
    packets = Packets(tunnel_bytes=20)
    assert Scenario(policy="host_dr", packets=packets).data_bytes == 4_178
    assert Scenario(policy="host_dr", packets=packets).ack_bytes == 84
    assert Scenario(policy="ofan", packets=packets).data_bytes == 4_158


def test_seeds_are_paired_over_load_balancers() -> None:
    experiment = Experiment(policies=("flow", "ofan"), seed=7, seeds=2, fabric=Fabric(k=4))
    runs = list(experiment.scenarios())
    assert [(run.seed, run.policy) for run in runs] == [
        (7, "flow"),
        (7, "ofan"),
        (8, "flow"),
        (8, "ofan"),
    ]
    assert {run.fabric.k for run in runs} == {4}


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "ofn"},
        {"seed": -1},
        {"seed": 2**63},
        {"fabric": {"k": 5}},
        {"fabric": {"latency_ns": 0}},
        {"fabric": {"rate_gbps": float("inf")}},
        {"collective": {"message_bytes": 0}},
        {"collective": {"model": "gpt"}},
        {"failures": {"convergence_rtt": float("nan")}},
        {"failures": {"convergence_rtt": 1e9}},
        {"failures": {"rate": 1.5}},
        {"failures": {"at_ns": float("inf")}},
        {"unknown": 1},
    ],
)
def test_impossible_values_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate(values)


def test_scenarios_are_frozen_and_hashable_values() -> None:
    with pytest.raises(ValidationError):
        DEFAULT.seed = 2
    assert Scenario() == DEFAULT
    assert hash(DEFAULT) == hash(Scenario())


def test_a_program_like_a_load_balancer_without_groups_is_refused() -> None:
    # Waypoints are chosen by hosts, so that a program has nothing to be like.
    with pytest.raises(ExperimentError, match=r"can be like one of .*, not host_dr"):
        Scenario(policy="host_dr", program="mine.p4")


def test_a_queue_without_room_for_an_ack_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"packets\.ack_bytes.*, which has 9001"):
        Scenario(fabric=Fabric(queue_bytes=9_000), packets=Packets(ack_bytes=9_001))
    assert Scenario(fabric=Fabric(queue_bytes=9_000), packets=Packets(ack_bytes=9_000))


@pytest.mark.parametrize(
    ("table", "values", "message"),
    [
        (Scenario, {"policy": "offan"}, "no load balancer 'offan' (did you mean ofan?)"),
        (Scenario, {"seed": "x"}, "seed = 'x': must be a whole number, as in 8"),
        (Scenario, {"nonsense": 1}, "unknown key nonsense"),
        (Scenario, {"collective": {"mesage_bytes": 1}}, "did you mean message_bytes?"),
        (Fabric, {"k": 5}, "k = 5: must be a multiple of 2"),
        (FailureEvent, {"link": "edge0_0-agg0_0"}, "down_ns is missing"),
        (
            Scenario,
            {"collective": {"message_bytes": "0.3 B"}},
            'must be bytes, or text with a unit, as in 65536 or "64KiB"',
        ),
    ],
)
def test_mistakes_in_calls_are_lines_as_for_files(
    table: type[Section], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExperimentError) as error:
        table(**values)
    assert message in str(error.value) and "pydantic" not in str(error.value)


def test_sizes_in_calls_have_units() -> None:
    tables: dict[str, Any] = {
        "collective": {"message_bytes": "256KiB"},
        "fabric": {"queue_bytes": "8 kB"},
    }
    scenario = Scenario(**tables)
    assert (scenario.collective.message_bytes, scenario.fabric.queue_bytes) == (256 << 10, 8_000)


def test_a_copy_with_other_values_is_checked_as_a_new_table_is() -> None:
    first = Scenario(policy="jsq", fabric={"k": 4})  # type: ignore[arg-type]
    assert first.replaced(seed=2) == Scenario(policy="jsq", fabric=Fabric(k=4), seed=2)
    with pytest.raises(ExperimentError, match="did you mean ofan"):
        first.replaced(policy="ofn")
    with pytest.raises(ExperimentError, match="polcy"):
        first.replaced(polcy="ofan")
