"""Workload files: written files are read back, and graphs that no network can run are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fattree.demand.flows import longest_computation_ps
from fattree.demand.traffic import flows
from fattree.demand.workloads.file import (
    MOST_PS,
    MOST_SIZE,
    About,
    read_workload,
    write_workload,
)
from fattree.demand.workloads.graph import Graph
from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.shape.topology import FatTree

GRAPH = Graph(
    source=np.array([0, 1, 1, 1]),
    destination=np.array([1, 1, 1, 0]),
    size=np.array([5_000, 0, 0, 1]),
    compute_ps=np.array([0, 700, 90, 0]),
    waiting=np.array([1, 2, 3, 3]),
    awaited=np.array([0, 0, 1, 2]),
)
ABOUT = About(about="two ranks", ranks=3, gpus_per_server=1, scale=4)


def written(folder: Path, graph: Graph = GRAPH, about: About = ABOUT) -> str:
    path = folder / "x.parquet"
    write_workload(path, graph, about)
    return str(path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    graph, about = read_workload(written(tmp_path))
    assert about == ABOUT
    for name in ("source", "destination", "size", "compute_ps", "waiting", "awaited"):
        assert getattr(graph, name).tolist() == getattr(GRAPH, name).tolist(), name


@pytest.mark.parametrize(("more", "is_read"), [(-1, True), (0, True), (1, False)])
@pytest.mark.parametrize(
    ("column", "row", "largest", "message"),
    [("size", 0, MOST_SIZE, "more than 2\\^53"), ("compute_ps", 1, MOST_PS, "row 1 takes")],
)
def test_the_largest_numbers_are_read_back(
    tmp_path: Path, column: str, row: int, largest: int, message: str, more: int, is_read: bool
) -> None:
    numbers = getattr(GRAPH, column).copy()
    numbers[row] = largest + more
    path = written(tmp_path, replace(GRAPH, **{column: numbers}))
    if is_read:
        assert getattr(read_workload(path)[0], column).tolist() == numbers.tolist()
        return

    with pytest.raises(TrafficError, match=message):
        read_workload(path)


NAMED = replace(GRAPH, nic=np.array([1, 0, 0, 0]))


def test_nics_are_written_and_read_back(tmp_path: Path) -> None:
    graph, _ = read_workload(written(tmp_path, NAMED))
    assert graph.nic is not None
    assert graph.nic.tolist() == [1, 0, 0, 0]


def test_a_message_goes_over_the_plane_of_its_nic(tmp_path: Path) -> None:
    collective = Collective(matrix="workload", file=written(tmp_path, NAMED))
    sprayed = flows(Scenario(fabric=Fabric(k=4, planes=2), collective=collective))
    assert sprayed.source.tolist() == [16, 1, 1, 1]
    assert sprayed.destination.tolist() == [17, 1, 1, 0]
    assert sprayed.packets.tolist() == [2, 0, 0, 1]


@pytest.mark.parametrize(
    ("fabric", "placement", "message"),
    [
        ({}, "packed", "name NICs up to 1, and each host has 1 here: fabric.planes = 2 gives"),
        ({"planes": 2, "plane_use": "spray"}, "packed", 'plane_use = "spray" says nothing where'),
        ({"planes": 2}, "rail", 'placement = "rail" says nothing where the workload names'),
    ],
)
def test_nics_that_a_fabric_does_not_have_are_refused(
    tmp_path: Path, fabric: dict[str, Any], placement: Any, message: str
) -> None:
    # By rail ranks 0 and 2 are neighbours: the first GPUs of two servers.
    step = 2 if placement == "rail" else 1
    graph = replace(NAMED, source=NAMED.source * step, destination=NAMED.destination * step)
    path = written(tmp_path, graph, replace(ABOUT, ranks=4, gpus_per_server=2))
    collective = Collective(matrix="workload", file=path, placement=placement)
    with pytest.raises(TrafficError, match=message):
        flows(Scenario(fabric=Fabric(k=4, **fabric), collective=collective))


def test_ranks_become_hosts(tmp_path: Path) -> None:
    collective = Collective(matrix="workload", file=written(tmp_path), hosts="pod1")
    sprayed = flows(Scenario(fabric=Fabric(k=4), collective=collective))
    assert sprayed.source.tolist() == [4, 5, 5, 5]
    assert sprayed.packets.tolist() == [2, 0, 0, 1]
    assert sprayed.waits_for(3).tolist() == [1, 2]
    # Side by side: the longer one counts.
    assert longest_computation_ps(FatTree(4), sprayed) == 700


def test_transfers_of_one_depth_share_the_rate_of_their_host(tmp_path: Path) -> None:
    # Rank 0 sends to 1 and 2 at once, and 3 sends to 1 and computes; then 1 alone sends.
    graph = Graph(
        source=np.array([0, 0, 3, 3, 1]),
        destination=np.array([1, 2, 1, 3, 2]),
        size=np.array([9, 9, 9, 0, 9]),
        compute_ps=np.array([0, 0, 0, 5, 0]),
        waiting=np.array([4]),
        awaited=np.array([0]),
    )
    path = written(tmp_path, graph, replace(ABOUT, ranks=4))
    collective = Collective(matrix="workload", file=path, hosts="pod1")
    sprayed = flows(Scenario(fabric=Fabric(k=4), collective=collective))
    assert sprayed.share.tolist() == [2, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (replace(GRAPH, source=np.array([0, 1, 1, -1])), "row 3 has ranks below 0"),
        (replace(GRAPH, destination=np.array([3, 1, 1, 0])), "row 0 has ranks above 2"),
        (replace(GRAPH, size=np.array([-1, 0, 0, 1])), "row 0 has fewer than 0 bytes"),
        (replace(GRAPH, size=np.array([9, 9, 0, 1])), "row 1 sends bytes from a rank to itself"),
        (replace(GRAPH, size=np.array([0, 0, 0, 1])), "row 0 sends no bytes"),
        (replace(GRAPH, compute_ps=np.array([5, 0, 0, 0])), "row 0 both sends and computes"),
        (replace(GRAPH, compute_ps=np.array([0, -5, 0, 0])), "row 1 takes less than no time"),
        (replace(GRAPH, awaited=np.array([0, 0, 1, 4])), "row 3 waits for a row that does not"),
        (
            replace(GRAPH, source=np.array([0, 1, 1, 2]), awaited=np.array([0, 0, 1, 1])),
            "row 3 waits for row 1, of which rank 2 cannot know",
        ),
        (
            Graph(*(np.zeros(1, dtype=np.int64) for _ in range(4))),
            "nothing is sent",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_row(
    tmp_path: Path, graph: Graph, message: str
) -> None:
    with pytest.raises(TrafficError, match=message):
        read_workload(written(tmp_path, graph))


def test_circles_are_refused(tmp_path: Path) -> None:
    circle = replace(GRAPH, waiting=np.array([1, 2, 3, 1]), awaited=np.array([2, 1, 1, 0]))
    collective = Collective(matrix="workload", file=written(tmp_path, circle))
    with pytest.raises(TrafficError, match="in a circle"):
        flows(Scenario(fabric=Fabric(k=4), collective=collective))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    path.write_text("not Parquet")
    with pytest.raises(TrafficError, match="not a workload"):
        read_workload(str(path))

    pl.DataFrame({"source": [1]}).write_parquet(path)
    with pytest.raises(TrafficError, match="no metadata"):
        read_workload(str(path))

    with pytest.raises(TrafficError, match="cannot be read"):
        read_workload(str(tmp_path / "none.parquet"))


def test_a_fabric_that_is_too_small_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, about=replace(ABOUT, ranks=17))
    collective = Collective(matrix="workload", file=file)
    with pytest.raises(TrafficError, match="has 17 ranks, but there are 16 hosts"):
        flows(Scenario(fabric=Fabric(k=4), collective=collective))
