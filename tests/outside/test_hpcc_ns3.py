"""HPCC's public ns-3 simulator, built and run on the same settings: PFC and DCQCN."""

from itertools import count
from typing import Any

import numpy as np
import pytest

from fattree.experiment.model import Scenario
from sim import run
from sim.runs.results import Result
from tests.outside.tables import rows, table
from tests.theory.test_pauses import is_paused

WIRE = table("hpcc_ns3.toml", "wire")
PFC = rows("hpcc_ns3.toml", "pfc")
SHARED_PFC = rows("hpcc_ns3.toml", "shared_pfc")
DCQCN = rows("hpcc_ns3.toml", "dcqcn")
DCQCN_OVER_PFC = rows("hpcc_ns3.toml", "dcqcn_over_pfc")
SEEDS = 8
US = 1_000_000


def scenario(row: dict[str, Any], seed: int, congestion: str, has_pauses: bool) -> Scenario:
    """Return hosts that begin together and are slowed down by pauses and by DCQCN alone."""
    fabric = table("hpcc_ns3.toml", "fabrics")[row["fabric"]] | {
        "rate_gbps": 8 * WIRE["data_bytes"] / WIRE["data_ns"],
        "latency_ns": WIRE["latency_ns"],
        "queue_bytes": 0,
        "threshold_bytes": WIRE["full_mark_bytes"],
    }
    if "memory_bytes" in row:
        # Here an unused uplink has a part of the memory, too.
        share = row["memory_bytes"] // (fabric["hosts_per_edge"] + 1)
        fabric |= {
            "flow_control": "pfc",
            "queue_bytes": share + WIRE["headroom_bytes"],
            "headroom_bytes": WIRE["headroom_bytes"],
            "buffer": "shared",
            "buffer_alpha": 1 / 8,
        }
    elif has_pauses:
        fabric |= {
            "flow_control": "pfc",
            "queue_bytes": WIRE["pause_above_bytes"] + WIRE["headroom_bytes"],
            "headroom_bytes": WIRE["headroom_bytes"],
        }
    marks = {
        "ecn_percent": 100 * WIRE["mark_bytes"] / WIRE["full_mark_bytes"],
        "ecn_full_percent": 100,
        "ecn_chance": WIRE["mark_chance"],
    }
    payload = WIRE["data_bytes"] - 62
    return Scenario.model_validate(
        {
            "policy": "flow",
            "seed": seed,
            "fabric": fabric,
            "packets": {
                "payload_bytes": payload,
                "ack_bytes": WIRE["ack_bytes"],
                "gap_bytes": 0,
            },
            "load_balancer": marks if congestion == "dcqcn" else {},
            "collective": {
                "matrix": "pairs",
                "message_bytes": row["packets"] * payload,
                "pairs": row["pairs"],
            },
            "transport": {
                "recovery": "go_back_n",
                "congestion": congestion,
                "timer_floor_rtt": 10_000,
                "random_phases": False,
                "receiver_share": False,
            },
        }
    )


def fcts_us(result: Result) -> Any:
    return (result.done_ps - result.start_ps) / US


def on_one_uplink(row: dict[str, Any]) -> Result:
    """Run with the first seed that sends all packets up from the first leaf by one uplink.

    There, as in the ns-3 run that has no other, flows collide. (With fewer uplinks hosts here would
    be paced from the start.)
    """
    for seed in count(1):
        result = run(scenario(row, seed, "fixed", has_pauses=True))
        tree = result.scenario.tree
        uplinks = result.ports.packets[tree.downlinks(0) : tree.downlinks(0) + tree.uplinks(0)]
        if (uplinks >= row["packets"]).sum() <= 1:
            return result
    raise AssertionError


@pytest.mark.parametrize("row", [*PFC, *SHARED_PFC], ids=lambda row: row["name"])
def test_pauses_are_as_many_and_as_long(row: dict[str, Any]) -> None:
    result = on_one_uplink(row)
    assert fcts_us(result) == pytest.approx(row["fct_us"], rel=row.get("room", 0.001))

    ports = result.ports
    told = ports.pauses[ports.pauses > 0]
    assert sorted(told) == pytest.approx(sorted(row["pauses"]), rel=row.get("pauses_room", 0))
    assert ports.dropped.sum() == 0
    switches_us, hosts_us = ports.paused_ps.sum() / US, result.host_paused_ps / US
    assert hosts_us == pytest.approx(row["hosts_paused_us"], rel=0.005)
    assert switches_us == pytest.approx(row.get("switches_paused_us", 0), rel=0.005)


def test_pauses_reach_all_tiers_when_they_do_there() -> None:
    row = next(row for row in PFC if row["fabric"] == "tiers")
    chosen = scenario(row, 1, "fixed", has_pauses=True)
    tree = chosen.tree
    for flow, agg_us, edge_us, host_us in zip(range(2), *row["first_us"].values(), strict=True):
        for node, time_us in (
            (tree.first_agg + flow, agg_us),
            (flow, edge_us),
            (tree.switches + flow, host_us),
        ):
            # Their control frames have 43 bytes, ours 64, as Ethernet's least frame: 4.2 ns.
            before_ps, behind_ps = round(time_us * US), round(time_us * US) + 6_000
            seen = [is_paused(chosen, node, until_ps) for until_ps in (before_ps, behind_ps)]
            assert seen == [False, True]


def runs(row: dict[str, Any], has_pauses: bool) -> list[Result]:
    return [run(scenario(row, seed, "dcqcn", has_pauses)) for seed in range(1, SEEDS + 1)]


def fits(seen: list[float], mean: float, deviation: float) -> bool:
    """Return whether two means of as many seeds differ by three standard errors at most."""
    margin = 3 * float(np.hypot(np.std(seen, ddof=1), deviation)) / SEEDS**0.5
    return bool(abs(np.mean(seen) - mean) <= margin)


def called(row: dict[str, Any]) -> str:
    return f"{row['fabric']}-{row['packets']}"


@pytest.mark.parametrize("row", DCQCN, ids=called)
def test_dcqcn_is_as_fast_as_even_and_queues_as_much(row: dict[str, Any]) -> None:
    results = runs(row, has_pauses=False)
    theirs = row["publication"]
    times = [fcts_us(result) for result in results]
    assert fits(
        [flow_times.mean() for flow_times in times], theirs["mean_us"], theirs["deviation_us"]
    )

    evenness = [flow_times.min() / flow_times.max() for flow_times in times]
    assert fits(evenness, theirs["evenness"], theirs["evenness_deviation"])
    # There a packet that is being sent has left its queue: up to a packet less.
    queues = [result.ports.queue_byte_ps.max() / result.end_ps / 1000 for result in results]
    margin = WIRE["data_bytes"] / 1000 + 0.05 * theirs["queue_kb"]
    assert np.mean(queues) == pytest.approx(theirs["queue_kb"], abs=margin)


@pytest.mark.parametrize("row", DCQCN[2:], ids=called)
def test_many_flows_take_as_long_as_with_the_rule_of_nics(row: dict[str, Any]) -> None:
    # With two the rules differ: that of NICs lets both send on for 50 us after the first mark.
    mean_us = np.mean([fcts_us(result).mean() for result in runs(row, has_pauses=False)])
    assert mean_us == pytest.approx(row["nic"]["mean_us"], rel=0.01)


@pytest.mark.parametrize("row", DCQCN_OVER_PFC, ids=called)
def test_dcqcn_leaves_as_many_pauses(row: dict[str, Any]) -> None:
    results = runs(row, has_pauses=True)
    theirs = row["publication"]
    times = [float(fcts_us(result).mean()) for result in results]
    assert fits(times, theirs["mean_us"], theirs["deviation_us"])

    paused = [result.host_paused_ps / US for result in results]
    assert fits(paused, theirs["paused_us"], theirs["paused_deviation_us"])
    pauses = np.mean([result.ports.pauses.sum() for result in results])
    assert pauses == pytest.approx(theirs["pauses"], rel=0.1)
