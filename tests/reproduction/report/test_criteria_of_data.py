"""Criteria that read a figure's whole data: tables of cases on both sides of each line."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from reproduction.figures import (
    fsdp,
    host_dr_model,
    ofan_model,
    packet_size,
    timeline,
)
from reproduction.report import schemes
from reproduction.report.figure import FAILS, HOLDS, PARTLY, Data, Outcome, Preset, slug
from tests.reproduction.report.made_up import runs


def fsdp_runs(ofan_increase: float, rival_increase: float, step: float = 1e-4) -> Data:
    """Return FSDP's runs with these increases at 405B, of Ofan and of the other load balancers."""
    increases = {
        "llama-7b": (0.2, 0.3),
        "llama-70b": (0.05, 0.3),
        "llama-405b": (ofan_increase, rival_increase),
    }
    frames = [
        runs(
            {
                policy: [value + step * seed for seed in range(10)]
                for policy, value in (
                    ("ofan", ofan),
                    ("host_pkt_ar", rest),
                    ("switch_pkt_ar", rest),
                )
            },
            name="fsdp",
        ).with_columns(pl.lit(model).alias("collective.model"))
        for model, (ofan, rest) in increases.items()
    ]
    queues = {"ofan": 6.0, "host_pkt_ar": 60.0, "switch_pkt_ar": 60.0}
    frame = pl.concat(frames).with_columns(
        pl.col("policy").replace_strict(queues).alias("max_queue_packets")
        + pl.col("seed") * pl.lit(0.01),
        utilisation_layers=pl.when(pl.col("policy") == "ofan").then([0.9] * 5).otherwise([0.7] * 5),
    )
    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = pl.concat([frame, frame.with_columns(name=pl.lit("fixed_rate"))])

    return data


@pytest.mark.parametrize(
    ("ofan_increase", "rival_increase", "outcome"),
    [(0.005, 0.3, HOLDS), (0.04, 0.3, PARTLY), (0.005, 0.6, PARTLY)],
)
def test_c16_the_others_increase_stays(
    ofan_increase: float, rival_increase: float, outcome: Outcome
) -> None:
    assert fsdp.claims(fsdp_runs(ofan_increase, rival_increase))[0].verdict == outcome


@pytest.mark.parametrize(
    ("ratio", "second", "first"),
    [
        (52, HOLDS, HOLDS),
        (43, HOLDS, HOLDS),
        (36, PARTLY, HOLDS),
        (67, PARTLY, HOLDS),
        (15, PARTLY, PARTLY),
    ],
)
def test_c16_both_forms_of_the_ratio(ratio: float, second: Outcome, first: Outcome) -> None:
    verdicts = fsdp.claims(fsdp_runs(0.3 / ratio, 0.3, step=0.0))
    assert [verdict.verdict for verdict in verdicts] == [second, first]
    assert [bool(verdict.criterion) for verdict in verdicts] == [False, True]


def layered(policy: str, queues: Sequence[float]) -> Data:
    """Return ten runs with these mean queues of the five layers."""
    rows = [
        {
            "policy": policy,
            "seed": seed,
            "sending": [queue + seed / 1000 for queue in queues],
            "steady": list(queues),
            "pointers": [7.75 + seed / 1000, 14.5 + seed / 1000],
        }
        for seed in range(10)
    ]
    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = pl.DataFrame(rows)
    return data


@pytest.mark.parametrize(
    ("queues", "second", "first"),
    [
        # Models: 2.09 packets at edges, 3.71 at cores.
        ((2.1, 3.5, 3.5, 2.2, 1.8), HOLDS, HOLDS),
        ((2.1, 3.5, 3.5, 2.2, 1.5), PARTLY, HOLDS),
        ((2.1, 3.5, 3.5, 2.7, 1.8), PARTLY, HOLDS),
        ((2.1, 3.5, 3.9, 2.2, 1.8), PARTLY, PARTLY),
        ((2.5, 3.5, 3.9, 2.7, 1.5), FAILS, FAILS),
    ],
)
def test_c19_layers_near_their_models_in_both_forms(
    queues: Sequence[float], second: Outcome, first: Outcome
) -> None:
    verdicts = host_dr_model.claims(layered("host_dr", queues))
    assert [verdict.verdict for verdict in verdicts] == [second, first]
    assert [bool(verdict.criterion) for verdict in verdicts] == [False, True]


@pytest.mark.parametrize(
    ("queues", "outcome"),
    [
        ((2.0, 3.0, 3.0, 3.0, 1.0), HOLDS),
        ((2.3, 2.4, 2.4, 2.05, 1.0), PARTLY),
    ],
)
def test_c20_other_layers_are_further_from_their_model(
    queues: Sequence[float], outcome: Outcome
) -> None:
    assert ofan_model.claims(layered("ofan", queues))[0].verdict == outcome


def packet_sizes(worst: float, best_at: int = 2048) -> Data:
    """Return runs of both messages, with the worst payload so far above the best."""
    frames = []
    for name, message in packet_size.BYTES.items():
        for payload in packet_size.PAYLOADS[name]:
            best = best_at if name == packet_size.SMALL else 11264
            distance = abs(np.log2(payload / best))
            ends = (
                packet_size.PAYLOADS[name][0],
                min(packet_size.JUMBO, max(packet_size.PAYLOADS[name])),
            )
            furthest = max(abs(np.log2(end / best)) for end in ends)
            increase = worst * (distance / furthest) ** 2
            frames.append(
                runs(
                    {
                        policy: [increase + seed / 10_000 for seed in range(10)]
                        for policy in schemes.BEST
                    },
                    name=slug(name),
                    message_bytes=message,
                    bound_ps=1_000_000_000,
                ).with_columns(pl.lit(payload).alias("packets.payload_bytes"))
            )

    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = pl.concat(frames)
    return data


@pytest.mark.parametrize(
    ("worst", "best_at", "second", "first"),
    [
        (0.1, 2048, HOLDS, HOLDS),
        (0.03, 2048, PARTLY, HOLDS),
        (0.2, 2048, PARTLY, HOLDS),
        (0.1, 6144, PARTLY, PARTLY),
    ],
)
def test_c13_the_choice_matters_by_some_ten_per_cent(
    worst: float, best_at: int, second: Outcome, first: Outcome
) -> None:
    verdicts = packet_size.claims(packet_sizes(worst, best_at))
    assert [verdict.verdict for verdict in verdicts] == [second, first]
    assert [bool(verdict.criterion) for verdict in verdicts] == [False, True]


@pytest.mark.parametrize(
    ("fastest", "outcome"), [(1.00024, HOLDS), (1.0011, PARTLY), (0.9999, PARTLY)]
)
def test_c01_the_fastest_run_from_its_first_packet_on(fastest: float, outcome: Outcome) -> None:
    bound = timeline.PRINTED[0]
    rows = [
        {
            "policy": "ofan",
            "k": k,
            "seed": seed,
            "increase": 0.0004,
            "sending_ccts_ps": [round(fastest * bound), round(1.01 * bound)],
        }
        for k in timeline.SIZES
        for seed in range(10)
    ]
    data = Data(Preset("default"), (), ())
    data.__dict__["frame"] = pl.DataFrame(rows)
    assert timeline.claims(data)[0].verdict == outcome
