"""Turn a control-flow graph into nested statements.

Parsers, pipelines and actions with jumps are all graphs in BMv2 JSON. A graph without cycles
becomes nested `if`s inside a loop that runs once: branches go on together where they first meet
again, and whatever ends early leaves the loop by `break`. A region that no structured program has
becomes a flat sequence of `if q == n`; a graph with a cycle becomes a loop over the same numbers,
which gives up after so many steps that only a program without an end can reach them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ofan_p4.softswitch.codegen.nodes import MOST_TESTS, Compare, Expression, Number, Variable
from ofan_p4.softswitch.codegen.statements import (
    Assign,
    Break,
    If,
    Once,
    Repeat,
    Statement,
    Statements,
)
from ofan_p4.softswitch.codegen.variables import BLOCK, INDEX

# Python's compiler refuses more than 100 levels of indentation.
MAX_DEPTH = 40
# Two nested loops of 255 turns take 400,000; BMv2 would never come back.
MAX_STEPS = 1 << 24
NO_CONDITION = None

Code = list[Statement]


@dataclass(frozen=True, slots=True)
class Branch:
    """One way out of a block: taken after `code` when `condition` holds (None: always)."""

    condition: Expression | None
    target: str | None
    code: Statements = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Straight-line code and the ways out of it; a block without branches ends the graph."""

    code: Statements
    branches: tuple[Branch, ...] = field(default=())


Graph = Mapping[str, Block]


def when(
    condition: Expression, code: Iterable[Statement], otherwise: Iterable[Statement] = ()
) -> If:
    """Return statements that run where a condition holds, and those that run elsewhere."""
    return If(((condition, tuple(code)),), tuple(otherwise))


def is_number(variable: Variable, number: int) -> Compare:
    """Return whether a variable has a certain value."""
    return Compare("==", variable, Number(number))


def by_index(index: Expression, arms: Sequence[Code]) -> Code:
    """Return the arm with the number in `index`."""
    return [Assign(INDEX, index), arm_of(INDEX, arms)]


def arm_of(variable: Variable, arms: Iterable[Code], otherwise: Iterable[Statement] = ()) -> If:
    """Return the arm with a variable's value as its number, or else `otherwise`."""
    return _arm_of(variable, [(i, tuple(code)) for i, code in enumerate(arms)], tuple(otherwise))


def _arm_of(
    variable: Variable, numbered: Sequence[tuple[int, Statements]], otherwise: Statements
) -> If:
    if len(numbered) <= MOST_TESTS:
        tests = ((is_number(variable, number), code) for number, code in numbered)
        return If(tuple(tests), otherwise)

    middle = len(numbered) // 2
    lower, upper = (
        _arm_of(variable, half, otherwise) for half in (numbered[:middle], numbered[middle:])
    )

    return when(Compare("<", variable, Number(middle + numbered[0][0])), [lower], [upper])


def emit(graph: Graph, start: str | None) -> Code:
    """Return statements that run the graph from `start` to an end.

    A `break` in a block ends it too.
    """
    if start is None:
        return []

    # `while True` runs once: it is there for `break`, the only way out of nested blocks that needs
    # neither a flag nor an exception.
    order = topological(graph, start)
    if order is None:
        return _dispatch(graph, start)

    return [Once((*_Emitter(graph, order).region(start, None, 0), Break()))]


def topological(graph: Graph, start: str) -> list[str] | None:
    """Return the blocks reachable from `start`, each before its successors, or None: a cycle."""
    done: list[str] = []
    state: dict[str, bool] = {}
    # An explicit stack: recursion would go as deep as the program is long.
    stack = [(start, iter(_successors(graph, start)))]
    state[start] = False

    while stack:
        name, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            stack.pop()
            state[name] = True
            done.append(name)
        elif following not in state:
            state[following] = False
            stack.append((following, iter(_successors(graph, following))))
        # A successor that is not done yet is an ancestor: a cycle.
        elif not state[following]:
            return None

    return done[::-1]


def _successors(graph: Graph, name: str) -> list[str]:
    return [branch.target for branch in graph[name].branches if branch.target is not None]


def _dispatch(graph: Graph, start: str) -> Code:
    numbers = {name: i for i, name in enumerate(graph, 1)}
    arms = (
        (is_number(BLOCK, number), (*graph[name].code, *_choose(graph[name], numbers)))
        for name, number in numbers.items()
    )
    return [_go_to(numbers[start]), Repeat(MAX_STEPS, (If(tuple(arms), (Break(),)),))]


def _go_to(number: int) -> Statement:
    return Assign(BLOCK, Number(number))


def _choose(block: Block, numbers: Mapping[str, int], leave: Code | None = None) -> Code:
    """Return the branches of a block as assignments of the number of the next block.

    `leave` ends the graph.
    """
    ending = [_go_to(0)] if leave is None else leave
    arms = [
        (branch, [_go_to(numbers[branch.target])] if branch.target else ending)
        for branch in _complete(block)
    ]

    return _if_chain(arms)


def _complete(block: Block) -> tuple[Branch, ...]:
    """Return the branches of a block, with the implicit way to the end where no condition holds."""
    if block.branches and block.branches[-1].condition is NO_CONDITION:
        return block.branches

    return (*block.branches, Branch(NO_CONDITION, None))


def _if_chain(ways: list[tuple[Branch, Code]]) -> Code:
    """Return the choice of a branch, each with its statements and then the given ones."""
    # Branches at the end with nothing to do need no test.
    while ways and not (ways[-1][0].code or ways[-1][1]):
        ways = ways[:-1]

    arms: list[tuple[Expression, Statements]] = []
    for branch, tail in ways:
        body = (*branch.code, *tail)
        if branch.condition is NO_CONDITION:
            return [If(tuple(arms), body)] if arms else list(body)

        arms.append((branch.condition, body))

    return [If(tuple(arms))] if arms else []


class _Emitter:
    """Emits the regions of one acyclic graph."""

    def __init__(self, graph: Graph, order: list[str]) -> None:
        self._graph = graph
        self._position = {name: i for i, name in enumerate(order)}

    def region(self, name: str | None, stop: str | None, depth: int) -> Code:
        """Return the code from `name` up to, not including, `stop`."""
        out: Code = []
        while name != stop:
            if name is None:
                return [*out, Break()]

            block = self._graph[name]
            join = self._join(block, stop)
            out += block.code

            # Nested, every block stands once: the code is as long as the graph. Where that does not
            # work (ways that cross), numbers take the place of structure.
            if depth < MAX_DEPTH and self._is_nested(block, join, stop):
                out += _if_chain(
                    [(b, self.region(b.target, join, depth + 1)) for b in _complete(block)]
                )
            else:
                out = [*out, *self._flat(block, stop)]
                join = stop

            name = join

        return out

    def _join(self, block: Block, stop: str | None) -> str | None:
        """Return the first block on more than one way to `stop`.

        Without one the ways part for good.
        """
        # One for each branch: a block to which two of them lead is on two ways.
        targets = [branch.target for branch in _complete(block)]
        if len(set(targets)) == 1:
            return targets[0]

        seen: set[str] = set()
        shared: set[str] = set()
        for target in targets:
            ways = self._reach(target, stop, inclusive=True)
            shared |= seen & ways
            seen |= ways

        # The first in topological order: no other shared block lies on a way to it.
        return min(shared, key=self._position.__getitem__, default=stop)

    def _is_nested(self, block: Block, join: str | None, stop: str | None) -> bool:
        """Whether the ways to the join share nothing, and none of them runs past it."""
        # A block on two arms would be written twice, and again with every level of nesting.
        seen = self._reach(join, None, inclusive=True) if join is not None else set()
        for target in [branch.target for branch in _complete(block)]:
            inside = self._reach(target, join, inclusive=False)
            if inside & seen or (stop is not None and stop in inside):
                return False

            seen |= inside

        return True

    def _flat(self, block: Block, stop: str | None) -> Code:
        inside = {
            name
            for branch in block.branches
            for name in self._reach(branch.target, stop, inclusive=False)
        }

        ordered = sorted(inside, key=self._position.__getitem__)
        numbers = {name: i for i, name in enumerate(ordered, 1)}
        if stop is not None:
            # Number 0 falls through all tests to whatever comes after the region.
            numbers[stop] = 0

        leave: Code | None = None if stop is None else [Break()]
        out = _choose(block, numbers, leave)
        # In topological order one pass is enough: every block only goes on to later ones.
        for name in ordered:
            inner = self._graph[name]
            body = (*inner.code, *_choose(inner, numbers, leave))
            out.append(when(is_number(BLOCK, numbers[name]), body))

        return out

    def _reach(self, start: str | None, stop: str | None, inclusive: bool) -> set[str]:
        """Return the blocks on the ways from `start` that do not lead through `stop`."""
        todo = [start]
        seen = set[str]()
        while todo:
            name = todo.pop()
            if name is None or name in seen or (name == stop and not inclusive):
                continue

            seen.add(name)
            if name != stop:
                todo += [branch.target for branch in self._graph[name].branches]

        return seen
