"""htsim's connection matrices: lines that are understood, an error of one line for all others."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.demand.flows import Flows, generations
from fattree.demand.matrix_flows import matrix_flows, read_connection_matrix
from fattree.demand.traffic import flows
from fattree.errors import MatrixError
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.files.connection_matrix import describe, parse_connection_matrix
from fattree.shape.topology import FatTree

K4 = FatTree(4)
SAMPLE = """\
# two rounds between two hosts
Nodes 16
Connections 3
Triggers 1

0->9 id 1 start 0 size 2000000 send_done_trigger 1
9->0 id 2 start 1500000.5 size 4097
0->4 id 3 trigger 1 size 1
trigger id 1 oneshot
"""


def flows_of(
    body: str, unit: str = "ps", connections: int | None = None, triggers: int | None = None
) -> Flows:
    lines = body.splitlines()
    counts = [
        sum("->" in line for line in lines),
        sum(line.startswith("trigger") for line in lines),
    ]
    header = f"Nodes 16\nConnections {connections or counts[0]}\nTriggers {triggers or counts[1]}\n"
    return matrix_flows(parse_connection_matrix(header + body, "t.cm"), K4, 4096, unit)  # type: ignore[arg-type]


def test_connections_become_flows_in_file_order() -> None:
    parsed = matrix_flows(parse_connection_matrix(SAMPLE, "t.cm"), K4, 4096, "ps")
    assert parsed.source.tolist() == [0, 9, 0]
    assert parsed.destination.tolist() == [9, 0, 4]
    assert parsed.packets.tolist() == [489, 2, 1]
    assert parsed.start_ps.tolist() == [0, 1_500_000, 0]
    assert [parsed.waits_for(flow).tolist() for flow in range(3)] == [[], [], [0]]


def test_the_unit_of_start_is_an_option_and_is_told() -> None:
    parsed = flows_of("0->1 start 2.5 size 9", "us")
    assert parsed.start_ps.tolist() == [2_500_000]
    text = describe(parse_connection_matrix(SAMPLE, "t.cm"), "ps")
    assert (
        text
        == "t.cm: 16 hosts, 3 connections, 1 triggers; start times read as ps, the latest is 1.5 µs"
    )


def test_messages_may_be_larger_than_theirs() -> None:
    assert flows_of("0->1 start 0 size 8589934592").packets.tolist() == [2**21]


def test_what_has_arrived_fires_at_the_receiver() -> None:
    parsed = flows_of(
        "0->1 id 1 start 0 size 9 recv_done_trigger 1 send_done_trigger 2\n"
        "1->2 id 2 trigger 1 size 9\n0->3 id 3 trigger 2 size 9\n"
        "trigger id 1 oneshot\ntrigger id 2 oneshot"
    )
    assert [parsed.waits_for(flow).tolist() for flow in range(3)] == [[], [0], [0]]


def test_a_barrier_waits_for_all_that_fire_it() -> None:
    body = "\n".join(
        [
            "0->1 id 1 start 0 size 9 send_done_trigger 7",
            "2->0 id 2 start 0 size 9 send_done_trigger 7",
            "0->3 id 3 trigger 7 size 9",
            "trigger id 7 barrier count 2",
        ]
    )
    assert flows_of(body).waits_for(2).tolist() == [0, 1]


def test_a_multishot_that_feeds_itself_is_a_chain() -> None:
    body = "\n".join(
        [
            "0->3 id 3 trigger 7 size 9 send_done_trigger 7",
            "0->1 id 1 start 0 size 9 send_done_trigger 7",
            "0->5 id 4 trigger 7 size 9",
            "trigger id 7 multishot",
        ]
    )
    assert [flows_of(body).waits_for(flow).tolist() for flow in range(3)] == [[1], [], [0]]


def test_a_oneshot_starts_all_its_connections() -> None:
    body = (
        "0->1 start 0 size 9 send_done_trigger 2\n0->2 id 5 trigger 2 size 9\n"
        "1->2 id 6 trigger 2 size 9\ntrigger id 2 oneshot"
    )
    assert generations(K4, flows_of(body)).tolist() == [0, 1, 1]


FIRE, WAIT = "0->1 id 1 start 0 size 9 send_done_trigger 1\n", "0->2 id 2 trigger 1 size 9\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("0->1 start 0 size 0", "t.cm:4: size 0 means endless, which is not supported"),
        ("0->1 start 0 size -5", "t.cm:4: size: expected a whole number from 1"),
        ("0->1 start 0", "t.cm:4: expected size and a number of bytes, found none"),
        ("0->1 size 9", "expected exactly one of start and trigger, found none"),
        (
            "0->1 id 1 start 0 trigger 1 size 9",
            "expected exactly one of start and trigger, found both",
        ),
        ("0->1 trigger 1 size 9", "expected id and a number"),
        ("0->1 start nan size 9", "start: expected a time from 0 to 10.18, found 'nan'"),
        ("0->1 start -1 size 9", "start: expected a time"),
        ("0->1 start 0 size 9 prio 3", "prio is not supported"),
        ("0->1 start 0 size 9 recv_done_trigger 3", "there is no trigger 3"),
        (
            "0->1 id 1 start 0 size 9 recv_done_trigger 1\n0->2 id 2 trigger 1 size 9\n"
            "trigger id 1 oneshot",
            "trigger 1 fires at host 1, which receives the connection of line 4; host 0 cannot",
        ),
        (
            "0->1 start 0 size 9 speed 3",
            "expected one of id, start, trigger, size, send_done_trigger, recv_done_trigger, found",
        ),
        ("0->1 start 0 size 9 size 8", "size is given twice"),
        ("0->1 start 0 size", "expected a value after size"),
        ("0->16 start 0 size 9", "t.cm:4: expected hosts from 0 to 15, found 16"),
        ("3->3 start 0 size 9", "host 3 cannot send to itself"),
        (
            "0->x start 0 size 9",
            "the destination: expected a whole number from 0 to 10.15, found 'x'",
        ),
        ("0->1 id 0 start 0 size 9", "id: expected a whole number from 1"),
        ("0->1 id 4 start 0 size 9\n2->3 id 4 start 0 size 9", "t.cm:5: id 4 is also on line 4"),
        (
            "failure switch_type TOR switch_id 0 link_id 1",
            "failure lines are not supported: name failed links",
        ),
        ("Failures 1", "failure lines are not supported"),
        ("Nodes 16", "Nodes is given twice"),
        (
            "hello",
            "expected one of Nodes, Connections, Triggers, Failures, "
            "SOURCE->DESTINATION or trigger, found 'hello'",
        ),
        ("trigger id 3 twice", "expected trigger id N oneshot"),
        ("trigger id 3 barrier", "expected trigger id N oneshot"),
        ("trigger id 3 barrier count 0", "count: expected a whole number from 1"),
        ("0->1 start 0 size 9 send_done_trigger 3", "there is no trigger 3"),
        (
            FIRE + "4->5 id 2 trigger 1 size 9\ntrigger id 1 oneshot",
            "trigger 1 is global: host 4 cannot know",
        ),
        (WAIT + "trigger id 1 oneshot", "needs 1 connection.s. that fire it, found 0"),
        (
            FIRE + FIRE.replace("id 1", "id 3") + WAIT + "trigger id 1 oneshot",
            "needs 1 connection.s. that fire it, found 2",
        ),
        (
            FIRE + WAIT + "trigger id 1 barrier count 2",
            "barrier trigger 1 needs 2 connection.s. that fire it, found 1",
        ),
        (
            FIRE + WAIT + WAIT.replace("id 2", "id 3") + "trigger id 1 multishot",
            "multishot trigger 1: only a chain",
        ),
        (WAIT.replace("\n", " send_done_trigger 1\n") + "trigger id 1 oneshot", "wait in a circle"),
    ],
)
def test_what_cannot_be_done_is_named(body: str, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        flows_of(body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a line Nodes N, found none"),
        ("Nodes 16", "expected a line Connections N, found none"),
        ("Nodes 16\nConnections 2\n0->1 start 0 size 9", "Connections is 2, but the file has 1"),
        ("Nodes 16\nConnections 0\ntrigger id 1 oneshot", "Triggers is 0, but the file has 1"),
        ("Nodes 16\nConnections 0", "expected at least one connection"),
        (
            "Nodes 17\nConnections 1\n0->1 start 0 size 9",
            "Nodes is 17, but a fat-tree of k = 4 has 16 hosts",
        ),
        ("Nodes\nConnections 1", "t.cm:1: expected Nodes and a number"),
        ("Nodes many", "t.cm:1: Nodes: expected a whole number from 0"),
    ],
)
def test_counts_must_match(text: str, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        matrix_flows(parse_connection_matrix(text, "t.cm"), K4, 4096, "ps")


def test_scenarios_read_files(tmp_path: Path) -> None:
    path = tmp_path / "t.cm"
    path.write_text(SAMPLE)
    parsed = flows(
        Scenario(
            fabric=Fabric(k=4),
            collective=Collective(matrix="file", file=str(path)),
            policy="subflow",
        )
    )
    assert len(parsed) == 12
    assert parsed.waits_for(8).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_unreadable_files_are_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "t.cm"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MatrixError, match=r"t\.cm'?: cannot be read"):
        read_connection_matrix(str(path), K4, 4096, "ps")


VOCABULARY = """Nodes Connections Triggers Failures trigger id start size send_done_trigger prio
oneshot multishot barrier count
0->1 0->9 9->0 1->0 -> 3->3 0 1 2 3 7 16 1e3 nan -1 9999999999999999999 # ٣"""
words = st.sampled_from([*VOCABULARY.split(), "\n", "\n", "\n"])
edits = st.lists(st.tuples(st.integers(0, 60), st.one_of(words, st.text(max_size=5))), max_size=4)


@settings(max_examples=500)
@given(edits)
def test_edited_files_are_read_or_refused(changes: list[tuple[int, str]]) -> None:
    tokens = SAMPLE.replace("\n", " \n ").split(" ")
    for index, word in changes:
        tokens[index % len(tokens)] = word
    try:
        matrix_flows(parse_connection_matrix(" ".join(tokens), "t.cm"), K4, 4096, "us")
    except MatrixError as error:
        assert str(error).startswith("t.cm") and "\n" not in str(error)


@settings(max_examples=500)
@given(st.one_of(st.text(max_size=200), st.lists(words, max_size=40).map(" ".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        matrix_flows(parse_connection_matrix(text, "t.cm"), K4, 4096, "ps")
    except MatrixError as error:
        assert str(error).startswith("t.cm")
