"""Chakra traces: files of their schema, their graphs, and refused nodes by their number.

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
from fattree.demand.workloads.graph import Graph
from fattree.errors import TrafficError
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_dimensions import by_dimensions
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
    # After its gather, its backward pass and the messages that it has received.
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
    named = next(named for named in node.attr if named.name == name)
    setattr(named, named.WhichOneof("value"), value)


def unknown_field(node: Any) -> None:
    node.MergeFromString(b"\x58\x05")


def without_time(name: str) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        node.duration_micros = 0
        node.attr.add(name=name, int64_val=1)

    return change


def of_dimensions(node: Any, *involved: bool) -> None:
    node.attr.add(name="involved_dim").bool_list.values.extend(involved)


def of_collectives(folder: Path, ranks: int, *nodes: dict[str, Any]) -> str:
    """Write traces of collectives; a list has a value for each rank. Return their prefix."""
    for rank in range(ranks):
        parts = [b""]
        for number, attributes in enumerate(nodes):
            node = Node(id=number, type=NodeType.COMM_COLL)
            for name, value in attributes.items():
                of_rank = value[rank] if isinstance(value, list) else value
                if isinstance(of_rank, tuple):
                    of_dimensions(node, *of_rank)
                else:
                    kind = "string_val" if isinstance(of_rank, str) else "int64_val"
                    node.attr.add(name=name, **{kind: of_rank})
            parts.append(node.SerializeToString())
        content = b"".join(bytes([len(part)]) + part for part in parts)
        (folder / f"x.{rank}.et").write_bytes(content)
    return str(folder / "x")


def pairs_of(graph: Graph) -> set[tuple[int, int]]:
    sent = graph.size > 0
    return set(zip(graph.source[sent].tolist(), graph.destination[sent].tolist(), strict=True))


ALL_REDUCE, ALL_TO_ALL = 0, 6
EIGHT_MIB = {"comm_type": ALL_REDUCE, "comm_size": 8 << 20}


def test_an_all_reduce_of_one_dimension_is_of_the_ranks_that_differ_in_it(tmp_path: Path) -> None:
    def of(*involved: bool) -> Graph:
        prefix = of_collectives(tmp_path, 8, {**EIGHT_MIB, "involved_dim": involved})
        return chakra_graph(by_dimensions(read_chakra(prefix), (4, 2)))

    # The first dimension counts fastest: ranks 0 to 3, and 4 to 7; two rings of four.
    first = of(True, False, True)
    assert ((first.size > 0).sum(), first.size.sum()) == (48, 100_663_296)
    assert all(a // 4 == b // 4 for a, b in pairs_of(first))
    second = of(False, True)
    assert (second.size.sum(), pairs_of(second)) == (
        8 * 2 * (4 << 20),
        {(a, (a + 4) % 8) for a in range(8)},
    )
    both = of(True, True)
    assert ((both.size > 0).sum(), both.size.sum()) == (112, 117_440_512)


def test_dimensions_stay_in_each_copy_of_a_trace(tmp_path: Path) -> None:
    nodes = ({**EIGHT_MIB, "involved_dim": (True, False)}, EIGHT_MIB)
    trace = by_dimensions(read_chakra(of_collectives(tmp_path, 4, *nodes)), (2, 2))
    graph = chakra_graph(stretched(trace, 8))
    # Four pairs, each rank 8 MiB; then one ring of eight.
    assert graph.size.sum() == 4 * 2 * (8 << 20) + 8 * 14 * (1 << 20)


def test_a_process_group_says_who_takes_part_whatever_the_dimensions(tmp_path: Path) -> None:
    groups = {"pg_name": ["a", "b", "b", "a"], "involved_dim": (True, False, False, True)}
    graph = chakra_graph(read_chakra(of_collectives(tmp_path, 4, {**EIGHT_MIB, **groups})))
    assert pairs_of(graph) == {(0, 3), (3, 0), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("involved", "sizes", "message"),
    [
        ((True, False), (4, 4), r"--dimensions 4,4: makes 16 ranks, but the trace has 8"),
        ((True, False), (2, 2, 2), r"involved_dim has 2 entries of 3 dimensions, 1 of them true"),
        ((False, False), (4, 2), r"involved_dim has 2 entries of 2 dimensions, 0 of them true"),
    ],
)
def test_dimensions_that_do_not_fit_are_refused(
    tmp_path: Path, involved: tuple[bool, ...], sizes: tuple[int, ...], message: str
) -> None:
    prefix = of_collectives(tmp_path, 8, {**EIGHT_MIB, "involved_dim": involved})
    with pytest.raises(TrafficError, match=message):
        by_dimensions(read_chakra(prefix), sizes)


def test_each_rank_sends_its_own_size_in_an_all_to_all(tmp_path: Path) -> None:
    attributes = {"comm_type": ALL_TO_ALL, "comm_size": [4_000, 8_000, 12_000, 0]}
    graph = chakra_graph(read_chakra(of_collectives(tmp_path, 4, attributes)))
    sent = [graph.size[graph.source == rank].sum() for rank in range(4)]
    # A message without bytes is one all the same.
    assert sent == [3_000, 6_000, 9_000, 3]


def test_collectives_of_other_tags_may_come_in_another_order(tmp_path: Path) -> None:
    first, second = (
        {"comm_type": ALL_REDUCE, "comm_size": [a, b], "comm_tag": [tag, 1 - tag]}
        for a, b, tag in ((100, 200, 0), (200, 100, 1))
    )
    graph = chakra_graph(read_chakra(of_collectives(tmp_path, 2, first, second)))
    assert sorted(graph.size[graph.size > 0].tolist()) == [50] * 4 + [100] * 4


def test_an_attribute_is_left_out_where_that_is_asked(tmp_path: Path) -> None:
    prefix = changed(tmp_path, 1, 3, lambda node: node.attr.add(name="colour", int32_val=1))
    assert read_chakra(prefix, ignored=frozenset({"colour"})).total_bytes == BYTES


def test_direct_collectives_send_to_all_at_once() -> None:
    graph = chakra_graph(read_chakra(str(HERE / "step")), "direct")
    assert graph.size.sum() == 2 * 2 * 20_000 + 2 * 30_000 + 4 * 2 * 3 * 16_000
    assert len(pairs_of(graph)) == 12


def test_a_recorded_time_of_a_collective_keeps_no_processor(tmp_path: Path) -> None:
    # A computation and a collective that wait for nothing begin together.
    prefix = of_collectives(tmp_path, 2, {}, EIGHT_MIB)
    for rank in range(2):
        path = tmp_path / f"x.{rank}.et"
        change_node(path, 0, lambda node: setattr(node, "type", NodeType.COMP))
        for number in (0, 1):
            change_node(path, number, lambda node: setattr(node, "duration_micros", 9))
    graph = chakra_graph(read_chakra(prefix))
    assert graph.depth()[graph.size > 0].min() == 1


def as_of_the_cpu(node: Any) -> None:
    """Make a collective the node of a run's CPU: it is launched, without a size."""
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
    # Data dependencies are on the GPU's computations; the CPU's launch was a caller.
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
        (1, 0, lambda n: n.attr.add(name="comm_bytes", int64_val=4), r"'comm_bytes' is not known"),
        (1, 3, lambda n: n.attr.add(name="comm_priority", int32_val=2), r"comm_priority is 2, but"),
        (1, 3, lambda n: n.attr.add(name="comm_size"), r"comm_size has a value of a kind that it"),
        (0, 4, lambda n: n.attr.add(name="comm_src", int32_val=2), r"comm_src is 2, but .* rank 0"),
        (1, 4, lambda n: n.attr.add(name="comm_dst", int32_val=2), r"comm_dst is 2, but .* rank 1"),
        (1, 3, unknown_field, r"node 3 \(backward\): has a field 11, which the schema does not"),
        (1, 3, without_time("num_ops"), r"node 3 \(backward\): has num_ops but no duration"),
        (1, 3, without_time("tensor_size"), r"node 3 \(backward\): has tensor_size but no durat"),
        (
            0,
            5,
            lambda n: of_dimensions(n, True, False),
            r"of some dimensions \(involved_dim\): --dim",
        ),
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
