"""No run beats its bound, and the best come close to it: judged by the capacity of links.

The plain model works out that capacity (`tests.naive.least`); it knows neither the bound nor the
runs.
"""

import random
from typing import Any

import pytest

from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES, LabelRule
from sim import UnfinishedError, run
from sim.sweeps.accounts import refuse_impossible
from tests.naive.least import Least

LINK = "edge0_0-agg0_0"
UPLINKS = (LINK, "edge0_0-agg0_1")
SHORT_QUEUES = {"queue_bytes": 20_000}
NEVER = float("inf")


def at_half(links: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {"degraded": [{"link": link, "rate": 0.5, **more} for link in links]}


def down(links: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {"events": [{"link": link, **more} for link in links]}


# Every key that changes how long the best load balancers take, with a run in which they are about
# as good as can be: ACKs, which may be lost, are all that they carry beyond the least.
OPTIMAL: dict[str, dict[str, Any]] = {
    "as it is": {},
    "rate_gbps": {"fabric": {"rate_gbps": 100}},
    "latency_ns": {"fabric": {"latency_ns": 5_000}},
    "edge_agg_gbps": {"fabric": {"edge_agg_gbps": 400}},
    "agg_core_gbps": {"fabric": {"agg_core_gbps": 300}},
    "edge_agg_latency_ns": {"fabric": {"edge_agg_latency_ns": 3_000}},
    "agg_core_latency_ns": {"fabric": {"agg_core_latency_ns": 3_000}},
    "counts": {
        "fabric": {
            "pods": 2,
            "edges_per_pod": 2,
            "hosts_per_edge": 4,
            "aggs_per_pod": 2,
            "cores_per_agg": 2,
        },
    },
    "planes": {"fabric": {"planes": 2}},
    "payload_bytes": {"packets": {"payload_bytes": 1024}},
    "header_bytes": {"packets": {"header_bytes": 500}},
    "gap_bytes": {"packets": {"gap_bytes": 400}},
    "ack_bytes": {"packets": {"ack_bytes": 400}},
    "matrix": {"collective": {"matrix": "all_to_all", "message_bytes": 1 << 20}},
    "pairs": {"collective": {"matrix": "pairs", "pairs": [(4, 0), (8, 0), (12, 0)]}},
    "rate_limit": {"transport": {"rate_limit": 0.5}},
    "packets_per_ack": {"transport": {"packets_per_ack": 4}},
    "recovery": {"transport": {"recovery": "sack"}},
    "reorder_packets": {"transport": {"recovery": "go_back_n", "reorder_packets": 64}},
    "sharing": {"transport": {"sharing": "active"}},
    "random_phases": {"transport": {"random_phases": False}},
    "slow uplinks": {"failures": at_half(UPLINKS)},
    "slow uplinks, upwards": {"failures": at_half(UPLINKS, direction="up")},
    "slow uplinks, downwards": {"failures": at_half(UPLINKS, direction="down")},
    "slow uplinks for a while": {"failures": at_half(UPLINKS, at_ns=20_000, until_ns=60_000)},
    "a slow host": {"failures": {"degraded": [{"host": "h0_0_0", "rate": 0.5}]}},
    "a dead uplink": {"failures": down((LINK,), down_ns=0)},
    "dead uplinks for a while": {"failures": down(UPLINKS, down_ns=20_000, up_ns=60_000)},
    "a host that is away": {
        "failures": {"events": [{"host": "h0_0_0", "down_ns": 10_000, "up_ns": 50_000}]}
    },
}
CLOSE = 1.03
# Senders do not know of slow links: queues before them are full, and drop unevenly. The bound
# leaves ACKs out that may be lost.
CLOSE_WITH_FAILURES = 1.08

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


def optimal(key: str, policy: str) -> Scenario:
    changed = OPTIMAL[key]
    queues = SHORT_QUEUES if "failures" in changed else {}
    fabric = changed.get("fabric", {})
    return Scenario.model_validate(
        {
            **changed,
            "policy": policy,
            "fabric": fabric if "pods" in fabric else {"k": 4, **queues, **fabric},
            "collective": {"message_bytes": 8 << 20, **changed.get("collective", {})},
        }
    )


@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
@pytest.mark.parametrize("key", OPTIMAL)
def test_the_best_come_close_to_the_bound(key: str, policy: str) -> None:
    scenario = optimal(key, policy)
    result, least_ps = run(scenario), Least(scenario).cct_ps()
    assert least_ps <= result.cct_ps
    # A bound that is too low is as wrong as a bound that is too high.
    close = CLOSE_WITH_FAILURES if "failures" in OPTIMAL[key] else CLOSE
    assert 0.995 * least_ps <= result.bound_ps <= result.cct_ps <= close * result.bound_ps
    assert result.sending_bound_ps <= result.sending_cct_ps
    # Of flows that share the rate actively, only each flow's own time is known.
    if not scenario.is_shared_actively:
        assert result.sending_cct_ps <= close * result.sending_bound_ps


def test_a_slow_link_and_a_dead_one_are_counted_alike() -> None:
    """Of two uplinks one carries ever less: at last it is as good as dead."""

    def bound_ps(failures: dict[str, Any]) -> int:
        slow = {"policy": "ofan", "fabric": {"k": 4}, "collective": {"message_bytes": 8 << 20}}
        return run(Scenario.model_validate({**slow, "failures": failures})).bound_ps

    rates = (0.9, 0.5, 0.25, 0.001)
    slow = [bound_ps({"degraded": [{"link": LINK, "rate": rate}]}) for rate in rates]
    dead = bound_ps(down((LINK,), down_ns=0))
    assert slow == sorted(slow)
    # The rate of hosts where a link is dead has room for ACKs as well.
    assert slow[-1] <= dead <= 1.03 * slow[-1]


def test_links_that_fail_late_are_seen_where_routes_never_follow() -> None:
    broken = {"events": [{"link": "agg0_0-core0_0", "down_ns": 480_000}], "convergence_rtt": NEVER}
    scenario = Scenario.model_validate(
        {"fabric": {"k": 4}, "collective": {"message_bytes": 64 << 20}, "failures": broken}
    )
    result = run(scenario)
    assert result.ports.lost_to_failure.sum() > 20_000
    assert result.cct_ps >= Least(scenario).cct_ps()


def test_nics_that_put_packets_in_order_send_fewer_acks() -> None:
    scenario = Scenario.model_validate(
        {
            "policy": "rsq",
            "fabric": {"k": 4},
            "collective": {"message_bytes": 16 << 20},
            "packets": {"payload_bytes": 1000},
            "transport": {"recovery": "go_back_n", "reorder_packets": 512},
        }
    )
    result = run(scenario)
    assert Least(scenario).cct_ps() <= result.bound_ps <= result.cct_ps


def collective(draw: random.Random, hosts: int) -> dict[str, Any]:
    matrix = draw.choice(
        MATRICES if hosts > 2 else [name for name in MATRICES if "pod" not in name]
    )
    settings: dict[str, Any] = {
        "matrix": matrix,
        "message_bytes": draw.randint(1, 40) * draw.choice((256, 4096)),
    }
    if matrix == "ring":
        settings["steps"] = draw.randint(1, 3)
    elif matrix == "pairs":
        both = {tuple(draw.sample(range(hosts), 2)) for _ in range(draw.randint(1, 8))}
        settings["pairs"] = tuple(sorted(both))
    elif matrix not in MATRICES[:4]:
        settings["chunks"] = draw.choice((1, 1, 2, 4))
    return settings


def transport(draw: random.Random, policy: str) -> dict[str, Any]:
    recovery, congestion = draw.choice(
        (
            ("erasure", "fixed"),
            ("erasure", "fixed"),
            ("sack", "fixed"),
            ("sack", "nscc"),
            ("go_back_n", "fixed"),
            ("go_back_n", "dcqcn"),
        )
    )
    hears_all = POLICIES[policy].label_rule in (LabelRule.FIXED, LabelRule.FRESH)
    return {
        "recovery": recovery,
        "congestion": congestion,
        "rate_limit": draw.choice((None, None, 0.37, 0.9)),
        "random_phases": draw.random() < 0.7,
        "packets_per_ack": draw.choice((1, 1, 4)) if hears_all else 1,
        "reorder_packets": draw.choice((0, 8, 512)) if recovery == "go_back_n" else 0,
        "trimming": recovery != "go_back_n" and draw.random() < 0.2,
        "sharing": draw.choice((None, None, "static", "active")),
        "receiver_share": draw.choice((None, None, True, False)),
    }


def failures(draw: random.Random, k: int) -> dict[str, Any]:
    """Draw links that are dead, slow or away for a while, at any time of a run."""
    pod, edge, agg = draw.randrange(k), draw.randrange(k // 2), draw.randrange(k // 2)
    link = f"edge{pod}_{edge}-agg{pod}_{agg}"
    core = f"agg{pod}_{agg}-core{agg}_{draw.randrange(k // 2)}"
    host = f"h{pod}_{edge}_0"
    target = draw.choice(({"link": link}, {"link": core}, {"switch": f"agg{pod}_{agg}"}))
    begin = draw.choice((0, 500, 3_000))
    while_ns = draw.choice((200, 2_000, 20_000))
    flaps = {"times": 3, "every_ns": 2 * while_ns}
    settings: dict[str, Any] = {
        "rate": draw.choice((0, 0, 0.1)),
        "convergence_rtt": draw.choice((0, 1, 3)),
        "local_repair": draw.random() < 0.3,
    }
    spans = {"at_ns": begin, "until_ns": draw.choice((None, begin + while_ns))}
    slow = {"rate": draw.choice((0.1, 0.37, 0.5)), "direction": draw.choice(("both", "up", "down"))}
    kinds: list[dict[str, Any]] = [
        {},
        {"degraded": [{**target, **spans, **slow}]},
        {"degraded": [{"host": host, **slow}]},
        {"events": [{**target, "down_ns": begin, "up_ns": begin + while_ns, **flaps}]},
        {"events": [{"host": host, "down_ns": begin, "up_ns": begin + while_ns}]},
        {"events": [{"link": core, "down_ns": begin}]},
        {"losses": [{**target, "share": 0.05}]},
    ]
    chosen = draw.choice(kinds)
    if chosen.get("events") and draw.random() < 0.3 and "up_ns" in chosen["events"][0]:
        settings |= {"rate": 0, "convergence_rtt": NEVER}
    return settings | chosen


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
            "failures": failures(draw, k) if draw.random() < 0.6 else {},
        }
    )


def judged(seeds: range) -> int:
    """Run experiments and judge each; return how many ran."""
    count = 0
    for seed in seeds:
        try:
            scenario = experiment(seed)
            result = run(scenario)
        except (FabricError, ValueError, UnfinishedError) as error:
            # A run that a random pair of keys refuses or never lets end has a message, and is rare.
            assert str(error), seed
            continue
        assert result.cct_ps >= result.bound_ps, seed
        assert result.sending_cct_ps >= result.sending_bound_ps, seed
        assert result.cct_ps >= least_ps(scenario), seed
        refuse_impossible(result)
        count += 1
        nobody_sends_above_its_rate(result, seed)
    return count


def least_ps(scenario: Scenario) -> int:
    """Return the plain model's least time, 0 for flows that it does not know."""
    if scenario.is_graph or scenario.collective.matrix == "fsdp":
        return 0

    return Least(scenario).cct_ps()


def nobody_sends_above_its_rate(result: Any, seed: int) -> None:
    """Assert that the bytes on hosts' links fit into the time that they had, at their rate."""
    scenario = result.scenario
    limit = scenario.transport.rate_limit or 1
    bits = result.host_bytes.max() * 8 / (scenario.fabric.rate_gbps * limit)
    assert bits * 1e3 <= result.end_ps + scenario.slot_ps, seed


def test_no_run_beats_its_bound() -> None:
    assert judged(range(60)) >= 50


@pytest.mark.slow
def test_no_run_of_two_thousand_beats_its_bound() -> None:
    assert judged(range(1_000, 3_000)) > 1_800
