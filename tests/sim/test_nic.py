"""A host's NIC, judged by arithmetic: ready flows share it, and it never idles meanwhile."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulation.virtual.fabric import VirtualFabric
from fattree.demand.workloads.file import About, write_workload
from fattree.experiment.model import Scenario
from fattree.generators.goal import goal_graph
from fattree.generators.goal_file import read_goal
from fattree.routes.demand import Demand
from hostagent.build import endpoints
from sim import run
from sim.runs.results import Result

SLOT_PS = Scenario().slot_ps
MIB = 1 << 20
# Between hosts below one edge: 2 links.
NEAR_RTT_PS = 2 * (500_000 * 2) + 2 * (41_580 + 640)

WriteMatrix = Callable[[int, list[tuple[int, int, int, int]]], dict[str, Any]]


@pytest.fixture
def matrix(tmp_path: Path) -> WriteMatrix:
    def write(nodes: int, flows: list[tuple[int, int, int, int]]) -> dict[str, Any]:
        lines = [f"Nodes {nodes}", f"Connections {len(flows)}"]
        lines += [
            f"{source}->{destination} id {number + 1} start {start_ps} size {size}"
            for number, (source, destination, start_ps, size) in enumerate(flows)
        ]
        path = tmp_path / "flows.cm"
        path.write_text("\n".join(lines) + "\n")
        return {"matrix": "file", "file": str(path), "start_unit": "ps"}

    return write


def ended(settings: dict[str, Any]) -> Result:
    return run(Scenario.model_validate({"policy": "ofan", **settings}))


def took_us(result: Result) -> list[float]:
    """Return how long each flow took, in us."""
    return [float(took) for took in np.round((result.done_ps - result.flows.start_ps) / 1e6, 1)]


def test_sends_that_never_meet_take_what_each_takes_alone(matrix: WriteMatrix) -> None:
    eight_mib = 2048 * SLOT_PS + NEAR_RTT_PS
    pair = [(0, 1, 0, 8 * MIB), (0, 1, 312_000_000, 8 * MIB)]
    both = took_us(ended({"collective": matrix(128, pair)}))
    assert both == [pytest.approx(eight_mib / 1e6, abs=0.2)] * 2

    four_mib = 1024 * SLOT_PS + NEAR_RTT_PS
    eight = [(0, 1, number * 100_000_000, 4 * MIB) for number in range(8)]
    assert (
        took_us(ended({"collective": matrix(128, eight)}))
        == [pytest.approx(four_mib / 1e6, abs=0.2)] * 8
    )


def test_what_is_ready_shares_the_nic_without_a_gap(matrix: WriteMatrix) -> None:
    """A short message beside a long one takes twice its time, and the long one its own and that."""
    flows = [(0, 100, 0, 4 * MIB), (0, 101, 10_000_000, MIB)]
    result = ended({"collective": matrix(128, flows)})
    rtt_ps = Scenario().zero_load_rtt_ps
    long, short = result.done_ps - result.flows.start_ps
    assert long == pytest.approx((1024 + 256) * SLOT_PS + rtt_ps, rel=0.01)
    assert short == pytest.approx(2 * 256 * SLOT_PS + rtt_ps, rel=0.01)


@pytest.mark.parametrize("senders", [8, 120])
def test_an_incast_ends_when_the_receivers_link_has_carried_it(
    matrix: WriteMatrix, senders: int
) -> None:
    flows = [(sender, 0, 0, MIB) for sender in range(4, 4 + senders)]
    result = ended({"collective": matrix(128, flows)})
    data_ps = senders * 256 * SLOT_PS
    assert data_ps < result.cct_ps < 1.03 * data_ps + 2 * Scenario().zero_load_rtt_ps


def test_receivers_keep_an_incast_from_drowning_what_only_shares_its_way(
    matrix: WriteMatrix,
) -> None:
    """Eight hosts of two edges send to host 0; a ninth flow leaves another edge of their pod."""
    incast = [(sender, 0, 0, 4 * MIB) for sender in range(4, 12)]
    flows = [*incast, (12, 64, 0, 4 * MIB)]
    scenario = Scenario.model_validate({"policy": "ofan", "collective": matrix(128, flows)})
    silent = scenario.transport.model_copy(update={"receiver_share": False})
    told = run(scenario)
    untold = run(scenario.model_copy(update={"transport": silent}))
    assert told.record.dropped < untold.record.dropped / 3
    assert took_us(told)[-1] <= took_us(untold)[-1]


def test_a_rate_limit_is_the_hosts_not_the_flows() -> None:
    """A ring all-reduce of 256 KiB among 16 hosts in four chunks, at a hundredth of the rate."""
    scenario = Scenario.model_validate(
        {
            "fabric": {"k": 4},
            "collective": {"matrix": "all_reduce", "message_bytes": 256 << 10, "chunks": 4},
            "transport": {"rate_limit": 0.01},
        }
    )
    result = run(scenario)
    bits = result.host_bytes.max() * 8
    assert bits / (0.01 * 800e9) * 1e12 <= result.cct_ps
    assert result.cct_ps > 491_000_000


def test_chunks_and_buckets_do_not_slow_a_collective() -> None:
    times = []
    for chunks in (1, 2, 4, 8):
        collective = {"matrix": "all_reduce", "message_bytes": 16 * MIB, "chunks": chunks}
        scenario = {"policy": "ofan", "fabric": {"k": 4}, "collective": collective}
        times.append(run(Scenario.model_validate(scenario)).cct_ps)
    # Beyond the time that rounding up to whole packets and random phases add.
    assert all(more <= 1.001 * fewer for fewer, more in pairwise(times))


def cut_into(chunks: int, algorithm: str) -> Result:
    """Run an all-reduce of 16 MiB among 16 hosts."""
    collective = {"matrix": "all_reduce", "message_bytes": 16 * MIB, "algorithm": algorithm}
    return ended({"fabric": {"k": 4}, "collective": {**collective, "chunks": chunks}})


def test_more_chunks_hide_more_of_a_trees_way() -> None:
    results = [cut_into(chunks, "double_tree") for chunks in (1, 2, 4, 8, 16, 32)]

    # With 32 chunks of 128 packets all but one part in a hundred of the way is hidden.
    assert all(more.cct_ps < fewer.cct_ps for fewer, more in pairwise(results[:-1]))
    assert results[-1].cct_ps < 1.02 * results[-2].cct_ps
    # A parent has three senders: each chunk goes on at the share of the chunk before.
    packets = sum(int(result.flows.packets.sum()) for result in results)
    assert sum(result.record.dropped for result in results) < 0.02 * packets


def test_chunks_never_slow_an_exchange_in_pairs() -> None:
    """Its links are full from the first round on, so that there is little to hide."""
    whole, *cut = [cut_into(chunks, "recursive").cct_ps for chunks in (1, 2, 4, 8, 16, 32)]

    assert all(times < whole for times in cut)
    # All chunks but the last one hide the way of the one before: a zero-load RTT for each round.
    assert max(cut) - min(cut) < 0.015 * whole


def test_nics_of_the_virtual_network_are_these(matrix: WriteMatrix) -> None:
    flows = [(0, 9, 0, 8192), (0, 5, 0, 65_536), (4, 9, 0, 65_536), (1, 9, 50_000, 40_960)]
    scenario = Scenario.model_validate(
        {"policy": "ofan", "fabric": {"k": 4}, "collective": matrix(16, flows)}
    )
    outcome = VirtualFabric(scenario).run()
    assert [flow.done_ps for flow in outcome.flows] == run(scenario).done_ps.tolist()


def test_a_message_in_turn_leaves_as_a_whole(tmp_path: Path) -> None:
    """GOAL's sends without an order: the second begins when the first has left."""
    goal = tmp_path / "two.goal"
    goal.write_text(
        "num_ranks 4\n"
        "rank 0 {\nl1: send 1048576b to 2 tag 0\nl2: send 1048576b to 3 tag 0\n}\n"
        "rank 1 {\n}\n"
        "rank 2 {\nl1: recv 1048576b from 0 tag 0\n}\n"
        "rank 3 {\nl1: recv 1048576b from 0 tag 0\n}\n"
    )
    workload = tmp_path / "two.parquet"
    write_workload(workload, goal_graph(read_goal(goal.read_bytes(), "two.goal")), About(ranks=4))
    collective = {"matrix": "workload", "file": str(workload)}
    scenario = Scenario.model_validate({"fabric": {"k": 4}, "collective": collective})
    result = run(scenario)
    sends = np.flatnonzero(result.flows.packets)
    first, second = sorted(result.done_ps[sends].tolist())
    assert second - first == pytest.approx(256 * SLOT_PS, rel=0.02)
    assert endpoints(Demand.of(scenario), [0])[0].kept_ps(is_ack=False) == SLOT_PS


def test_four_sends_over_four_nics_take_as_long_as_one(tmp_path: Path) -> None:
    sends = "\n".join(f"send {MIB}b to 1 tag {nic} cpu 0 nic {nic}" for nic in range(4))
    receives = "\n".join(f"recv {MIB}b from 0 tag {nic} cpu 0 nic {nic}" for nic in range(4))
    text = f"num_ranks 2\nrank 0 {{\n{sends}\n}}\nrank 1 {{\n{receives}\n}}\n"
    one_mib_us = (256 * SLOT_PS + NEAR_RTT_PS) / 1e6

    def took(schedule: str, **fabric: int) -> float:
        path = tmp_path / "nics.parquet"
        write_workload(path, goal_graph(read_goal(schedule.encode(), "x.goal")), About(ranks=2))
        collective = {"matrix": "workload", "file": str(path)}
        return max(took_us(ended({"fabric": {"k": 4, **fabric}, "collective": collective})))

    assert took(text, planes=4) == pytest.approx(one_mib_us, abs=0.2)
    one_nic = "\n".join(line.partition(" nic")[0] for line in text.splitlines())
    assert took(one_nic) == pytest.approx(one_mib_us + 3 * 256 * SLOT_PS / 1e6, abs=0.2)
