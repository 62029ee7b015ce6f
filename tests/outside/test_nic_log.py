"""Drawn traffic on the virtual network, judged by the rules of a link: rate, no idling, no loss."""

import random
from pathlib import Path
from typing import Any

import pytest

from fattree.demand import traffic
from fattree.experiment.model import Scenario
from tests.outside.nic_log import Log, faults, logged

POLICIES = ("ofan", "rsq", "host_pkt", "switch_pkt_ar")


def drawn(seed: int, folder: Path, **transport: Any) -> Scenario:
    """Return an experiment of a few messages between 16 hosts, begun at random times."""
    draw = random.Random(seed)
    count = draw.randint(2, 9)
    lines = ["Nodes 16", f"Connections {count}"]
    for number in range(1, count + 1):
        # Few destinations, so that messages meet there and buffers overflow.
        destination = draw.randrange(3)
        source = draw.choice([host for host in range(6) if host != destination])
        start, size = draw.randint(0, 2_000_000), draw.randint(1, 60_000)
        lines.append(f"{source}->{destination} id {number} start {start} size {size}")
    file = folder / f"{seed}.cm"
    file.write_text("\n".join(lines) + "\n")
    return Scenario.model_validate(
        {
            "policy": draw.choice(POLICIES),
            "seed": seed,
            "fabric": {"k": 4, "queue_bytes": draw.choice((9_000, 20_000, 800_000))},
            "collective": {"matrix": "file", "file": str(file), "start_unit": "ps"},
            "packets": {"payload_bytes": draw.choice((1024, 4096))},
            # Receivers that hold senders back would let links idle on purpose.
            "transport": {
                "receiver_share": False,
                "random_phases": False,
                "rate_limit": draw.choice((None, 0.37)),
                **transport,
            },
        }
    )


@pytest.mark.parametrize("seed", range(12))
def test_links_keep_their_rate_never_idle_and_lose_nothing(seed: int, tmp_path: Path) -> None:
    scenario = drawn(seed, tmp_path)
    log = logged(scenario)
    assert log.bytes_in == log.bytes_out + log.bytes_dropped
    assert faults(scenario, traffic.flows(scenario), log) == []


def test_some_of_these_drop_packets_and_share_links(tmp_path: Path) -> None:
    logs: list[Log] = [logged(drawn(seed, tmp_path)) for seed in range(12)]
    assert any(log.bytes_dropped for log in logs)
    flows = [{packet.flow for packet in sent} - {-1} for log in logs for sent in log.sent.values()]
    assert max(map(len, flows)) > 2


def test_the_judge_sees_a_rate_that_flows_share_for_life(tmp_path: Path) -> None:
    """Equal shares for life leave a link idle when the other flows are done, or not begun."""
    seen = []
    for seed in range(12):
        scenario = drawn(seed, tmp_path, sharing="static")
        seen += faults(scenario, traffic.flows(scenario), logged(scenario))
    assert any("idle" in fault for fault in seen)
