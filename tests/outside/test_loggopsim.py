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
    "hosts_per_edge": RANKS,
    "rate_gbps": 8,
    "latency_ns": 500,
    "queue_bytes": 0,
}


def completion_us(pattern: str, folder: Path) -> float:
    """Return how long a pattern takes here, from its start to its last ACK."""
    text = goal(RANKS, PATTERNS[pattern](RANKS, MIB))
    file = folder / "pattern.parquet"
    write_workload(file, goal_graph(read_goal(text.encode(), pattern)), About(ranks=RANKS))
    scenario = Scenario.model_validate(
        {
            "policy": "ofan",
            "fabric": LEAF,
            "collective": {"matrix": "workload", "file": str(file)},
            "packets": {"header_bytes": 62, "ack_bytes": 64, "gap_bytes": 0},
        }
    )
    return run(scenario).cct_ps / 1e6


@pytest.mark.parametrize("row", rows("loggopsim.toml", "completion"), ids=name_of)
def test_a_pattern_takes_as_long_as_in_loggopsim(row: dict[str, Any], tmp_path: Path) -> None:
    assert completion_us(row["pattern"], tmp_path) == pytest.approx(row["us"], rel=0.06)
