"""GOAL: both of its forms, its graphs, and refused lines with their numbers.

`ring.goal.bin` beside this file was written from `ring.goal` (ours) by LogGOPSim's txt2bin.
"""

from pathlib import Path

import pytest

from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators import goal_text
from fattree.generators.goal import goal_graph, marks
from fattree.generators.goal_file import read_goal
from fattree.generators.goal_schedule import Kind

HERE = Path(__file__).parent
TEXT = (HERE / "ring.goal").read_bytes()
BINARY = (HERE / "ring.goal.bin").read_bytes()
PAIR = """
num_ranks 2
rank 0 {
l1: calc 1000
l2: send 4096b to 1 tag 7
l2 requires l1
}
rank 1 {
l1: recv 4096b from 0 tag 7
l2: calc 500
l2 requires l1
}
"""


def test_the_binary_form_says_what_the_text_says() -> None:
    text, binary = read_goal(TEXT, "ring.goal"), read_goal(BINARY, "ring.goal.bin")
    assert text.total_bytes == binary.total_bytes == 4 * 3 * 40_000
    assert text.dependencies == binary.dependencies
    assert text.ranks == binary.ranks
    for name in ("rank", "kind", "size", "peer", "tag", "cpu", "nic"):
        assert getattr(text, name).tolist() == getattr(binary, name).tolist()
    for name in ("requires", "starts_after"):
        assert sorted(getattr(text, name).T.tolist()) == sorted(getattr(binary, name).T.tolist())


def test_a_schedule_becomes_transfers_and_computations() -> None:
    graph = goal_graph(read_goal(PAIR.encode(), "pair.goal"))
    # calc, send; the receive is a place to meet, calc.
    assert graph.size.tolist() == [0, 4096, 0, 0]
    assert graph.compute_ps.tolist() == [1_000_000, 0, 0, 500_000]
    edges = set(zip(graph.waiting.tolist(), graph.awaited.tolist(), strict=True))
    assert edges == {(1, 0), (2, 1), (3, 2)}


def test_irequires_waits_for_what_the_other_has_waited_for() -> None:
    text = PAIR.replace(
        "l2 requires l1\n}\nrank 1", "l3: calc 9 cpu 1\nl3 irequires l2\nl2 requires l1\n}\nrank 1"
    )
    graph = goal_graph(read_goal(text.encode(), "pair.goal"))
    # l3 may start when l2 may: when l1 is complete, not l2.
    assert sorted(graph.awaited[graph.waiting == 2].tolist()) == [0]


def test_calculations_of_one_processor_take_turns() -> None:
    text = (
        "num_ranks 2\nrank 0 {\ncalc 5\ncalc 6\ncalc 7 cpu 1\nsend 1b to 1\n}\n"
        "rank 1 {\nrecv 1b from 0\n}"
    )
    graph = goal_graph(read_goal(text.encode(), "x.goal"))
    edges = set(zip(graph.waiting.tolist(), graph.awaited.tolist(), strict=True))
    assert edges == {(1, 0), (4, 3)}


@pytest.mark.parametrize("received", ["", " nic 0", " nic 3"])
def test_a_message_has_the_nic_that_its_send_names(received: str) -> None:
    text = PAIR.replace("to 1 tag 7", "to 1 tag 7 cpu 0 nic 3").replace(
        "from 0 tag 7", f"from 0 tag 7 cpu 0{received}"
    )
    graph = goal_graph(read_goal(text.encode(), "pair.goal"))
    assert graph.nic is not None
    assert (graph.nic.tolist(), graph.nics) == ([0, 3, 0, 0], 4)
    # Of the first NIC alone nothing is said, as in schedules that name none.
    assert goal_graph(read_goal(text.replace("nic 3", "nic 0").encode(), "x.goal")).nic is None


def test_both_forms_name_the_same_nics() -> None:
    # The byte of the NIC stands behind that of the processor, in operations of 39 bytes.
    first = int.from_bytes(BINARY[14:22], "little") + 8
    content = bytearray(BINARY)
    count, roots = (
        int.from_bytes(BINARY[first + offset : first + offset + 4], "little") for offset in (0, 4)
    )
    for number in range(count):
        content[first + 8 + 4 * roots + 39 * number + 22] = 2
    assert set(read_goal(bytes(content), "x.goal").nic[:count].tolist()) == {2}


def test_messages_of_a_pair_and_tag_match_in_order() -> None:
    text = (
        "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 1\nsend 2b to 1 tag 2\nsend 3b to 1 tag 1\n}\n"
        "rank 1 {\nrecv 2b from 0 tag 2\nrecv 1b from 0 tag 1\nrecv 3b from 0 tag 1\n}"
    )
    graph = goal_graph(read_goal(text.encode(), "x.goal"))
    edges = set(zip(graph.waiting.tolist(), graph.awaited.tolist(), strict=True))
    assert edges == {(3, 1), (4, 0), (5, 2)}


def test_labels_comments_and_empty_messages() -> None:
    text = PAIR.replace("l1: calc 1000", "/* two\nlines */ l1: calc 1000 // ns").replace(
        "4096", "0"
    )
    schedule = read_goal(text.encode(), "x.goal")
    assert schedule.kind[0] == Kind.CALCULATE
    # A message without bytes is one all the same.
    assert goal_graph(schedule).size.sum() == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rank 0 {", "rank 0{"),
        ("rank 0 {", "  rank   0  { "),
        ("l1: calc", "l1 :calc"),
        ("l1: calc", "l1:calc"),
        ("4096b", "4096 b"),
        ("tag 7", "tag 00000007 cpu 0 nic 0"),
        ("\n", "\r\n"),
    ],
)
def test_dialects_say_the_same(old: str, new: str) -> None:
    usual, dialect = (
        goal_graph(read_goal(text.encode(), "x.goal")) for text in (PAIR, PAIR.replace(old, new))
    )
    for name in ("source", "destination", "size", "compute_ps", "waiting", "awaited"):
        assert getattr(usual, name).tolist() == getattr(dialect, name).tolist()


@pytest.mark.parametrize("peer", ["1", "-1"])
def test_a_send_of_no_bytes_to_nobody_is_a_mark(peer: str) -> None:
    mark = f"l3: send 0b to {peer} tag 9\nl3 requires l1\n"
    schedule = read_goal(PAIR.replace("}", mark + "}", 1).encode(), "x.goal")
    graph = goal_graph(schedule)
    assert (graph.size.sum(), marks(schedule, graph)) == (4096, 1)
    assert graph.awaited[graph.waiting == 2].tolist() == [0]


def test_a_file_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_goal(TEXT, "x.goal")
    monkeypatch.setattr(goal_text, "PART_BYTES", 64)
    parts = read_goal(TEXT, "x.goal")
    for name in ("rank", "kind", "size", "peer", "tag", "cpu", "nic", "place"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert whole.requires.tolist() == parts.requires.tolist()
    assert whole.starts_after.tolist() == parts.starts_after.tolist()


def test_ranks_may_come_in_any_order() -> None:
    head, first, second = PAIR.replace("rank 0", "~rank 0").replace("rank 1", "~rank 1").split("~")
    turned = goal_graph(read_goal((head + second + first).encode(), "x.goal"))
    usual = goal_graph(read_goal(PAIR.encode(), "x.goal"))
    assert turned.size.tolist() == usual.size.tolist()
    assert sorted(turned.awaited.tolist()) == sorted(usual.awaited.tolist())


def test_binary_files_of_other_versions_are_named() -> None:
    ranks = 3
    old = ranks.to_bytes(4, "little") + (4 + 16 * ranks).to_bytes(8, "little") + bytes(200)
    with pytest.raises(TrafficError, match="binary form of another version, without a magic"):
        read_goal(old, "x.goal")
    with pytest.raises(TrafficError, match="binary form, used up by a run of LogGOPSim"):
        read_goal((2342).to_bytes(8, "little") + BINARY[8:], "x.goal")
    with pytest.raises(TrafficError, match="cut short or of another version: write it again"):
        read_goal(BINARY[:120] + b"\xff" * (len(BINARY) - 120), "x.goal")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("l2 requires l1", "l2 requires l9", r"x.goal:6: there is no label l9 in this rank"),
        ("num_ranks 2", "num_ranks 33000000", r"x.goal:2: has 33,000,000 ranks, more than"),
        ("num_ranks 2", "num_ranks " + "9" * 5000, r"x.goal:2: expected num_ranks N"),
        ("calc 1000", "calc " + "9" * 18, r"rank 0: an operation of 1.0e\+21 .*is too large"),
        ("calc 1000", "compute 1000", r"x.goal:4: expected calc N"),
        ("to 1 tag 7", "from 1 tag 7", r"x.goal:5: expected calc N"),
        ("from 0 tag 7", "from -1 tag 7", r"x.goal:9: a peer or tag of -1 is not supported"),
        ("from 0 tag 7", "from 0 tag 8", r"x.goal:9: nothing is sent that it could receive"),
        ("l1: recv 4096b from 0 tag 7\n", "l1: calc 1\n", r"x.goal:5: nobody receives it"),
        ("from 0 tag 7", "from 0 tag 7 nic 2", r"x.goal:9: receives at NIC 2 what NIC 0 sends"),
        ("to 1", "to 2", r"x.goal:5: there is no rank 2, ranks are 0 to 1"),
        ("l2: send", "l1: send", r"x.goal:5: the label l1 is given twice"),
        ("rank 1 {", "rank 0 {", r"x.goal:8: rank 0 is given twice"),
        ("num_ranks 2\n", "", r"x.goal:2: rank 0 is given twice, or is not below num_ranks 0"),
    ],
)
def test_what_is_not_supported_is_named_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(TrafficError, match=f"^{message}"):
        goal_graph(read_goal(PAIR.replace(old, new, 1).encode(), "x.goal"))


def test_a_file_that_ends_early_is_refused() -> None:
    with pytest.raises(TrafficError, match="expected a closing }"):
        read_goal(PAIR[:-3].encode(), "x.goal")
    with pytest.raises(TrafficError, match="cut short"):
        read_goal(BINARY[:200], "x.goal")
    with pytest.raises(TrafficError, match="neither GOAL's text nor its binary form"):
        read_goal(b"\xff\xfe", "x.goal")


def test_parts_that_are_named_again_and_again_are_refused() -> None:
    # The ranks' table begins at byte 14: all ranks get the first one's part, and more.
    whole = bytearray(BINARY)
    for rank in range(4):
        whole[14 + 16 * rank : 30 + 16 * rank] = (14 + 64 - 8).to_bytes(8, "little") + len(
            BINARY
        ).to_bytes(8, "little")

    with pytest.raises(TrafficError, match="cut short"):
        read_goal(bytes(whole), "x.goal")

    # Nor do parts that end before they begin make up for it.
    begin, end = (int.from_bytes(BINARY[offset : offset + 8], "little") + 8 for offset in (14, 22))
    head, part, ranks = BINARY[:8], BINARY[begin:end], 64
    first = 14 + 16 * ranks
    row = (first - 8).to_bytes(8, "little") + (first + len(part) - 8).to_bytes(8, "little")
    backwards = (first + len(part) - 8).to_bytes(8, "little") + bytes(8)
    table = row * 40 + backwards * 24
    content = head + ranks.to_bytes(4, "little") + BINARY[12:14] + table + part
    with pytest.raises(TrafficError, match="cut short"):
        read_goal(content, "x.goal", Room(0))


def chained(length: int) -> bytes:
    """Return operations each of which starts after the one before, and requires one of its own."""
    lines = [f"n{i}: calc 1\nl{i}: calc 1 cpu 1\nl{i} requires n{i}" for i in range(length)]
    lines += [f"l{i} irequires l{i - 1}" for i in range(1, length)]
    body = "\n".join(lines)
    return (
        f"num_ranks 2\nrank 0 {{\n{body}\nsend 1b to 1\n}}\nrank 1 {{\nrecv 1b from 0\n}}".encode()
    )


def test_chains_of_starts_take_edges_in_proportion() -> None:
    length = 500
    graph = goal_graph(read_goal(chained(length), "x.goal"))
    # Each operation, the operations that its start waits for, and the order of two processors.
    assert len(graph.waiting) < 6 * length
    # The last one starts after all that those before it require.
    reached, pending = set(), [2 * length - 1]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += graph.awaited[graph.waiting == node].tolist()

    assert {2 * i for i in range(length)} <= reached


def test_starts_in_a_circle_are_refused() -> None:
    text = PAIR.replace("l2 requires l1\n}\nrank 1", "l2 irequires l1\nl1 irequires l2\n}\nrank 1")
    with pytest.raises(TrafficError, match=r"^x.goal:[45]: starts after itself, by irequires in a"):
        goal_graph(read_goal(text.encode(), "x.goal"))


def test_comments_without_an_end_are_refused_at_once() -> None:
    with pytest.raises(TrafficError, match=r"^x.goal:2: this comment has no end"):
        read_goal(b"\n" + b"/*x" * 200_000, "x.goal")
