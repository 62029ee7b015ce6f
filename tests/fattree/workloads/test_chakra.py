"""Chakra traces: files of their schema, what becomes of them, and what is refused by its node.

`step.N.et` beside this file are ours, written with MLCommons' own schema and its writer; their
reader counts the same nodes, dependencies and bytes.
"""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fattree.demand.workloads.file import About, read_workload, write_workload
from fattree.errors import TrafficError
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_file import Node, NodeType, read_chakra
from fattree.generators.chakra_ranks import stretched

HERE = Path(__file__).parent
NODES, DEPENDENCIES, BYTES = 24, 24, 396_000


def test_bytes_and_dependencies_are_those_of_their_reader() -> None:
    trace = read_chakra(str(HERE / "step"))
    assert sum(map(len, trace.ranks)) == NODES
    assert (trace.dependencies, trace.total_bytes) == (DEPENDENCIES, BYTES)
    assert [node.kind for node in trace.ranks[1]] == [
        NodeType.COMP,
        NodeType.COMP,
        NodeType.COMM_COLL,
        NodeType.COMP,
        NodeType.COMM_RECV,
        NodeType.COMM_COLL,
    ]


def test_traces_become_a_graph_that_can_run(tmp_path: Path) -> None:
    graph = chakra_graph(read_chakra(str(HERE / "step")))
    # Two gathers of two, two sends, an all-reduce of four by ring.
    assert graph.size.sum() == 2 * 2 * 20_000 + 2 * 30_000 + 4 * 2 * 3 * 16_000
    assert sorted(graph.compute_ps[graph.compute_ps > 0].tolist()) == [
        *[2_000_000] * 4,
        5_000_000,
        6_000_000,
        7_000_000,
        8_000_000,
        *[9_000_000] * 4,
    ]
    write_workload(tmp_path / "x.parquet", graph, About(ranks=4))
    assert len(read_workload(str(tmp_path / "x.parquet"))[0]) == len(graph)


def test_a_collective_begins_when_its_own_rank_has_computed() -> None:
    graph = chakra_graph(read_chakra(str(HERE / "step")))
    depth = graph.depth()
    sends = depth[(graph.size == 16_000) & (graph.source == 1)]
    # After its gather, its backward pass and what it has received.
    received = depth[(graph.size == 30_000) & (graph.destination == 1)]
    assert sends.min() > received.max()


def test_compressed_files_are_read(tmp_path: Path) -> None:
    for rank in range(4):
        content = (HERE / f"step.{rank}.et").read_bytes()
        (tmp_path / f"step.{rank}.et").write_bytes(gzip.compress(content))
    assert read_chakra(str(tmp_path / "step")).total_bytes == BYTES


def changed(folder: Path, rank: int, number: int, change: Callable[[Any], None]) -> str:
    """Copy the traces with one node changed; return their prefix."""
    for path in HERE.glob("step.*.et"):
        shutil.copy(path, folder)
    change_node(folder / f"step.{rank}.et", number, change)
    return str(folder / "step")


def change_node(path: Path, number: int, change: Callable[[Any], None]) -> None:
    content, parts = path.read_bytes(), []
    while content:
        # All messages are short: a length is a byte.
        parts.append(content[1 : 1 + content[0]])
        content = content[1 + content[0] :]
    node = Node.FromString(parts[number + 1])
    change(node)
    parts[number + 1] = node.SerializeToString()
    path.write_bytes(b"".join(bytes([len(part)]) + part for part in parts))


def attribute(node: Any, name: str, value: int) -> None:
    one = next(one for one in node.attr if one.name == name)
    setattr(one, one.WhichOneof("value"), value)


def as_of_the_cpu(node: Any) -> None:
    """Make a collective what a run's CPU says of it: that it is launched, not what is sent."""
    node.ClearField("attr")
    node.attr.add(name="is_cpu_op", bool_val=True)
    node.duration_micros = 3


def test_the_cpus_part_of_a_collective_is_a_computation(tmp_path: Path) -> None:
    prefix = changed(tmp_path, 0, 2, as_of_the_cpu)
    change_node(tmp_path / "step.1.et", 2, as_of_the_cpu)
    graph = chakra_graph(read_chakra(prefix))
    # The gather of the second two, two sends, an all-reduce of four.
    assert graph.size.sum() == 2 * 20_000 + 2 * 30_000 + 4 * 2 * 3 * 16_000
    assert (graph.compute_ps == 3_000_000).sum() == 2


@pytest.mark.parametrize("caller", [77, 3])
def test_control_dependencies_that_are_no_order_are_left_out(tmp_path: Path, caller: int) -> None:
    whole = read_chakra(str(HERE / "step"))
    trace = read_chakra(changed(tmp_path, 1, 3, lambda node: node.ctrl_deps.append(caller)))
    assert (whole.left_out, trace.left_out) == (0, 5)
    # Of data are those on what the GPU has computed; the CPU's launch has been a caller.
    assert [trace.ranks[0][2].after, whole.ranks[0][2].after] == [(0,), (1, 0)]


def test_a_trace_is_stretched_by_copies_that_meet_in_collectives_of_all() -> None:
    trace = read_chakra(str(HERE / "step"))
    graph = chakra_graph(stretched(trace, 8))
    # Gathers and sends stay in each copy; the all-reduce is of eight.
    assert graph.size.sum() == 2 * (2 * 2 * 20_000 + 2 * 30_000) + 8 * 2 * 7 * 8_000
    pairs = set(zip(graph.source.tolist(), graph.destination.tolist(), strict=True))
    assert {(4, 5), (6, 7), (3, 4), (7, 0)} <= pairs
    assert stretched(trace, 4) == trace


def test_a_trace_of_one_rank_becomes_one_of_many(tmp_path: Path) -> None:
    shutil.copy(HERE / "step.0.et", tmp_path)
    change_node(tmp_path / "step.0.et", 4, lambda node: setattr(node, "type", NodeType.COMP))
    trace = stretched(read_chakra(str(tmp_path / "step")), 3)
    # The group of which only this rank is known is of all ranks, too.
    assert chakra_graph(trace).size.sum() == 3 * 2 * 20_000 + 3 * 2 * 2 * -(-64_000 // 3)


def test_stretching_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    trace = read_chakra(str(HERE / "step"))
    for ranks in (2, 6):
        with pytest.raises(
            TrafficError, match=f"--ranks {ranks}: must be a multiple of the 4 ranks"
        ):
            stretched(trace, ranks)

    prefix = changed(tmp_path, 0, 5, as_of_the_cpu)
    for rank in (1, 2, 3):
        change_node(tmp_path / f"step.{rank}.et", 5, as_of_the_cpu)
    with pytest.raises(TrafficError, match="--ranks 8: no collective of this trace is of all"):
        stretched(read_chakra(prefix), 8)


@pytest.mark.parametrize(
    ("rank", "number", "change", "message"),
    [
        (0, 2, lambda n: attribute(n, "comm_type", 3), r"node 2 \(gather\): .*type GATHER are not"),
        (0, 2, lambda n: attribute(n, "comm_size", 7), r"node 2 \(gather\): not all ranks of its"),
        (2, 5, lambda n: setattr(n, "type", 4), r"node 5 \(reduce\): not all ranks of its group"),
        (0, 4, lambda n: attribute(n, "comm_tag", 6), r"node 4 \(recv\): nothing is sent that it"),
        (0, 4, lambda n: attribute(n, "comm_dst", 9), r"node 4 \(send\): there is no rank 9"),
        (1, 3, lambda n: n.data_deps.append(77), r"node 3 \(backward\): depends on node 77, which"),
        (1, 3, lambda n: setattr(n, "id", 0), r"node 0 \(backward\): there is another node of"),
        (1, 3, lambda n: setattr(n, "type", 0), r"node 3 \(backward\): is of type INVALID_NODE"),
        (1, 3, lambda n: setattr(n, "type", 42), r"step.1.et: message 4 is no node of a Chakra"),
        (1, 3, lambda n: setattr(n, "duration_micros", 2**63), r"rank 1: .*9.2e\+24 .*too large"),
        (0, 2, lambda n: n.ClearField("attr"), r"node 2 \(gather\): comm_type is missing"),
    ],
)
def test_what_is_not_supported_is_named_with_its_node(
    tmp_path: Path, rank: int, number: int, change: Callable[[Any], None], message: str
) -> None:
    with pytest.raises(TrafficError, match=message):
        chakra_graph(read_chakra(changed(tmp_path, rank, number, change)))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrafficError, match=r"there is no .*x.0.et"):
        read_chakra(str(tmp_path / "x"))
    (tmp_path / "x.0.et").write_bytes(b"\x7fnot a trace")
    with pytest.raises(TrafficError, match="not a Chakra trace, or cut short"):
        read_chakra(str(tmp_path / "x"))
    packed = gzip.compress((HERE / "step.0.et").read_bytes())
    (tmp_path / "x.0.et").write_bytes(packed[:-9])
    with pytest.raises(TrafficError, match="compressed, but cut short"):
        read_chakra(str(tmp_path / "x"))


def test_zeros_are_refused_at_the_first(tmp_path: Path) -> None:
    # Not after as many nodes as there are bytes.
    (tmp_path / "x.0.et").write_bytes(gzip.compress(bytes(1 << 20)))
    with pytest.raises(TrafficError, match=r"node 0 .*is of type INVALID_NODE"):
        read_chakra(str(tmp_path / "x"))
