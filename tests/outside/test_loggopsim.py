"""LogGOPSim: how long communication patterns take (loggopsim.toml)."""

from pathlib import Path
from typing import Any

import pytest

from fattree.demand.workloads.file import About, write_workload
from fattree.experiment.model import Scenario
from fattree.generators.goal import goal_graph
from fattree.generators.goal_file import read_goal
from sim import run
from tests.outside.patterns import PATTERNS, goal
from tests.outside.tables import name_of, rows

RANKS = 16
MIB = 1 << 20
# One leaf: a message crosses two links, so 1,000 ns. Ranks are its hosts.
LEAF = {
    "pods": 1,
    "edges_per_pod": 1,
    "aggs_per_pod": 1,
    "rate_gbps": 8,
    "latency_ns": 500,
    "queue_bytes": 0,
}
PACKETS = {"header_bytes": 62, "ack_bytes": 64, "gap_bytes": 0}


def completion_us(pattern: str, folder: Path, ranks: int, size: int) -> float:
    """Return how long a pattern takes here, from its start to its last ACK."""
    text = goal(ranks, PATTERNS[pattern](ranks, size))
    file = folder / "pattern.parquet"
    write_workload(file, goal_graph(read_goal(text.encode(), pattern)), About(ranks=ranks))
    scenario = Scenario.model_validate(
        {
            "policy": "ofan",
            "fabric": LEAF | {"hosts_per_edge": ranks},
            "collective": {"matrix": "workload", "file": str(file)},
            "packets": PACKETS,
        }
    )
    return run(scenario).cct_ps / 1e6


@pytest.mark.parametrize("row", rows("loggopsim.toml", "completion"), ids=name_of)
def test_a_pattern_takes_as_long_as_in_loggopsim(row: dict[str, Any], tmp_path: Path) -> None:
    time_us = completion_us(
        row["pattern"], tmp_path, row.get("ranks", RANKS), row.get("bytes", MIB)
    )
    assert time_us == pytest.approx(row["us"] + row.get("stored", 0) * 4.096, rel=0.06)


@pytest.mark.parametrize("size", [1, 255, 4_095, 4_096, 4_097, 8_191])
def test_a_message_takes_the_time_of_its_bytes(size: int) -> None:
    pair = {"matrix": "pairs", "pairs": ((0, 1),), "message_bytes": size}
    scenario = Scenario.model_validate(
        {
            "policy": "ofan",
            "fabric": LEAF | {"hosts_per_edge": 2},
            "collective": pair,
            "packets": PACKETS,
            "transport": {"random_phases": False},
        }
    )
    # A byte takes 1 ns on each of two links. All bytes cross the first link, and the first packet,
    # which is not shorter than the last, has to be there before any goes on. The ACK of a packet
    # that is shorter than an ACK waits for the one before.
    packets = -(-size // 4_096)
    there_ns = size + packets * 62 + min(size, 4_096) + 62 + 1_000
    there_ns += max(64 - (size - 4_096 + 62), 0) if packets > 1 else 0
    back_ns = 2 * 64 + 1_000
    assert run(scenario).cct_ps == 1_000 * (there_ns + back_ns)
