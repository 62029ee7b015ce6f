"""Generated control flow takes the same steps as a walk through its graph."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ofan_p4.softswitch.codegen import printing
from ofan_p4.softswitch.codegen.expressions import HeaderRef
from ofan_p4.softswitch.codegen.flow import Block, Branch, Graph, arm_of, emit, is_number
from ofan_p4.softswitch.codegen.nodes import Compare, Number, Temporary
from ofan_p4.softswitch.codegen.printed_statements import lines
from ofan_p4.softswitch.codegen.statements import Assign, Change, Log, Statement

Way = tuple[int | None, ...]


def graph_of(ways: list[Way], has_else: list[bool]) -> Graph:
    """Block i appends i to `trail`, then way k is taken when choice[i] == k.

    The last may be an else.
    """
    graph = {}
    for i, targets in enumerate(ways):
        branches = []
        for k, target in enumerate(targets):
            is_else = has_else[i] and k == len(targets) - 1
            condition = None if is_else else is_number(Temporary(f"choice{i}"), k)
            branches.append(Branch(condition, name_of(target), (seen(i, k),)))
        graph[str(i)] = Block((seen(i),), tuple(branches))

    return graph


def seen(*numbers: int) -> Statement:
    return Log("place", "", tuple(map(Number, numbers)))


def name_of(target: int | None) -> str | None:
    return None if target is None else str(target)


def walk(ways: list[Way], has_else: list[bool], choice: list[int]) -> list[Any]:
    trail: list[Any] = []
    block: int | None = 0
    while block is not None and len(trail) < 200:
        trail.append(block)
        taken = choice[block]
        if taken >= len(ways[block]):
            if not has_else[block]:
                break
            taken = len(ways[block]) - 1
        trail.append((block, taken))
        block = ways[block][taken]

    return trail


def text(graph: Graph) -> list[str]:
    return lines(emit(graph, "0"))


def run(graph: Graph, choice: list[int]) -> list[Any]:
    trail: list[Any] = []
    choices = {f"choice{i}": taken for i, taken in enumerate(choice)}

    def log(_: str, position: tuple[int, ...]) -> None:
        trail.append(position if len(position) > 1 else position[0])

    exec("\n".join(text(graph)), {"log": log, "place": "", **choices})

    return trail


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[list[Way], list[bool]]:
    size = draw(st.integers(1, 9))
    ways: list[Way] = []
    for i in range(size):
        later = st.sampled_from([None, *range(i + 1, size), *range(i + 1, min(i + 3, size))])
        ways.append(tuple(draw(st.lists(later, min_size=1, max_size=3))))

    return ways, draw(st.lists(st.booleans(), min_size=size, max_size=size))


@settings(deadline=None, max_examples=200)
@given(
    shape=acyclic(),
    choices=st.lists(st.lists(st.integers(0, 3), min_size=9, max_size=9), min_size=1, max_size=8),
)
@example(
    shape=([(1, 2), (2, None), (None,)], [True, True, True]),
    choices=[[0, 0, 0] + [0] * 6, [0, 1, 0] + [0] * 6],
)
def test_acyclic_graphs(shape: tuple[list[Way], list[bool]], choices: list[list[int]]) -> None:
    ways, has_else = shape
    graph = graph_of(ways, has_else)
    for choice in choices:
        assert run(graph, choice) == walk(ways, has_else, choice)


def test_a_cycle_runs_until_its_condition_ends_it() -> None:
    turn = Temporary("choice0")
    step = (Log("place", "", (turn,)), Change("+", turn, Number(1)))
    count = Block(step, (Branch(Compare("<", turn, Number(5)), "0"),))

    assert run({"0": count}, [0]) == [0, 1, 2, 3, 4]


def test_an_endless_cycle_is_given_up() -> None:
    assert run({"0": Block((), (Branch(None, "0"),))}, []) == []


def test_very_deep_nesting_becomes_flat() -> None:
    depth = 150
    graph = {
        str(i): Block(
            (),
            (
                Branch(is_number(Temporary("choice0"), i), None, (seen(i),)),
                Branch(None, str(i + 1)),
            ),
        )
        for i in range(depth)
    }
    graph[str(depth)] = Block((seen(depth),))

    assert [run(graph, [i]) for i in (0, 77, depth)] == [[0], [77], [depth]]


def test_two_ways_to_one_block_and_a_third_elsewhere_stay_short() -> None:
    """Fourteen such blocks in a row were 147,451 lines."""
    ways: list[Way] = [(i + 1, i + 1, i + 2) for i in range(20)] + [(21,), (None,)]
    assert len(text(graph_of(ways, [True] * 22))) < 1_000


def test_a_structured_program_needs_no_numbers() -> None:
    """if a: (if b: return); tail -- the early return must not flatten the tail."""
    ways: list[Way] = [(1, 2), (None, 2), (3,), (None,)]
    assert not any("q" in line for line in text(graph_of(ways, [True] * 4)))


@settings(deadline=None, max_examples=200)
@given(shape=acyclic())
@example(shape=([(1, 2), (3, 4), (3, 4), (None,), (None,)], [True] * 5))
def test_every_block_stands_once_or_the_code_would_grow_with_each_level(
    shape: tuple[list[Way], list[bool]],
) -> None:
    ways, has_else = shape
    graph = graph_of(ways, has_else)
    code_lines = [line.strip() for line in text(graph)]
    marks = [line.strip() for i in range(len(ways)) for line in lines([seen(i)])]

    assert {code_lines.count(mark) for mark in marks} <= {0, 1}


def test_each_number_has_its_arm_however_many() -> None:
    """Arms are halved three times; a number without an arm takes the `otherwise` branch."""
    number, result = Temporary("number"), Temporary("found")
    arms: list[list[Statement]] = [[Assign(result, Number(1_000 + arm))] for arm in range(200)]
    code = "\n".join(lines([arm_of(number, arms, [Assign(result, Number(7))])]))
    for value in (-1, *range(202)):
        names: dict[str, Any] = {"number": value}
        exec(code, names)
        assert names["found"] == (1_000 + value if 0 <= value < 200 else 7)


def test_each_index_reads_its_element_however_many() -> None:
    index = Temporary("number")
    read = printing.text(
        HeaderRef((), index).pick([Number(1_000 + element) for element in range(200)])
    )
    for value in (-1, *range(202)):
        assert eval(read, {"number": value}) == (1_000 + value if 0 <= value < 200 else 0)
