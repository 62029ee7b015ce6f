"""No run beats its bound: experiments drawn at random, judged by what links can do."""

import random
from typing import Any

import pytest

from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES, LabelRule
from sim import run
from sim.sweeps.accounts import refuse_impossible

MATRICES = (
    "permutation",
    "inter_pod_permutation",
    "all_to_all",
    "ring",
    "pairs",
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
)


def collective(draw: random.Random, hosts: int) -> dict[str, Any]:
    matrix = draw.choice(MATRICES if hosts > 2 else [one for one in MATRICES if "pod" not in one])
    found: dict[str, Any] = {
        "matrix": matrix,
        "message_bytes": draw.randint(1, 40) * draw.choice((256, 4096)),
    }
    if matrix == "ring":
        found["steps"] = draw.randint(1, 3)
    elif matrix == "pairs":
        both = {tuple(draw.sample(range(hosts), 2)) for _ in range(draw.randint(1, 8))}
        found["pairs"] = tuple(sorted(both))
    elif matrix not in MATRICES[:4]:
        found["chunks"] = draw.choice((1, 1, 2, 4))
    return found


def transport(draw: random.Random, policy: str) -> dict[str, Any]:
    recovery, congestion = draw.choice(
        (("erasure", "fixed"), ("erasure", "fixed"), ("sack", "fixed"), ("sack", "nscc"))
    )
    hears_all = POLICIES[policy].label_rule in (LabelRule.FIXED, LabelRule.FRESH)
    return {
        "recovery": recovery,
        "congestion": congestion,
        "rate_limit": draw.choice((None, None, 0.37, 0.9)),
        "random_phases": draw.random() < 0.7,
        "packets_per_ack": draw.choice((1, 1, 4)) if hears_all else 1,
        "trimming": draw.random() < 0.2,
        "sharing": draw.choice((None, None, "static", "active")),
        "receiver_share": draw.choice((None, None, True, False)),
    }


def experiment(seed: int) -> Scenario:
    draw = random.Random(seed)
    k = draw.choice((2, 4, 4))
    policy = draw.choice(sorted(POLICIES))
    rates: dict[str, Any] = {}
    if draw.random() < 0.3:
        rates = {"edge_agg_gbps": draw.choice((400, 800)), "agg_core_gbps": draw.choice((200, 400))}
    return Scenario.model_validate(
        {
            "policy": policy,
            "seed": seed,
            "fabric": {
                "k": k,
                "latency_ns": draw.choice((1, 50, 500, 500)),
                "rate_gbps": draw.choice((100, 800)),
                **rates,
            },
            "collective": collective(draw, k**3 // 4),
            "transport": transport(draw, policy),
            "packets": {
                "payload_bytes": draw.choice((256, 1024, 4096)),
                "ack_bytes": draw.choice((64, 64, 200)),
            },
            "failures": {"rate": draw.choice((0, 0, 0, 0.1)), "convergence_rtt": 0},
        }
    )


def judged(seeds: range) -> int:
    """Run experiments and judge each; return how many ran."""
    count = 0
    for seed in seeds:
        try:
            scenario = experiment(seed)
            result = run(scenario)
        except (FabricError, ValueError) as error:
            # What one of a random pair of keys refuses has a name, and is rare.
            assert str(error), seed
            continue
        assert result.cct_ps >= result.bound_ps, seed
        assert result.sending_cct_ps >= result.sending_bound_ps, seed
        refuse_impossible(result)
        count += 1
        nobody_sends_above_its_rate(result, seed)
    return count


def nobody_sends_above_its_rate(result: Any, seed: int) -> None:
    """What hosts have put on their links fits into the time that they had, at their rate."""
    scenario = result.scenario
    limit = scenario.transport.rate_limit or 1
    bits = result.host_bytes.max() * 8 / (scenario.fabric.rate_gbps * limit)
    assert bits * 1e3 <= result.end_ps + scenario.slot_ps, seed


def test_no_run_beats_its_bound() -> None:
    assert judged(range(60)) >= 50


@pytest.mark.slow
def test_no_run_of_two_thousand_beats_its_bound() -> None:
    assert judged(range(1_000, 3_000)) > 1_800
