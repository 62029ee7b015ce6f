"""The statements of a program as lines of Python, one blank deeper for every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ofan_p4.softswitch.base.masked import NO_RANK
from ofan_p4.softswitch.codegen import names, statements
from ofan_p4.softswitch.codegen.nodes import Joined, Variable
from ofan_p4.softswitch.codegen.printing import BITS, listed, operand, text, tuple_of, within
from ofan_p4.softswitch.codegen.statements import Key, Statement

Lines = list[str]


def lines(code: Iterable[Statement]) -> Lines:
    """Return statements as Python."""
    return [line for statement in code for line in RULES[type(statement)](statement)]


def indented(block: Iterable[str]) -> Lines:
    """Return the lines of a block one level deeper, `pass` for an empty block."""
    return [" " + line for line in block] or [" pass"]


def _unpacked(targets: Sequence[Variable]) -> str:
    # The comma makes it work for one variable too.
    return f"{listed(targets)}, ="


def _if(node: statements.If) -> Lines:
    chain: Lines = []
    for test, body in node.arms:
        chain += [f"{'elif' if chain else 'if'} {text(test)}:", *indented(lines(body))]

    return [*chain, "else:", *indented(lines(node.otherwise))] if node.otherwise else chain


def _state(values: Iterable[Any]) -> str:
    kept = "".join(text(value) + ", " for value in values)
    return f"({names.DATA}, {names.POSITION}, {kept})"


def _use_record(node: statements.UseRecord) -> Lines:
    # An entry is (action, arguments, record), and a default entry the only item of its list.
    entry = names.ENTRY if node.table is None else f"{names.default(node.table)}[0]"
    return [f"{names.RECORD} = {entry}[2]"]


def _count_entry(node: statements.CountEntry) -> Lines:
    return [f"{names.RECORD}.packets += 1", f"{names.RECORD}.octets += {text(node.length)}"]


def _count_cell(node: statements.CountCell) -> Lines:
    return [
        f"{names.CELL} = {names.counter(node.array)}[{text(node.index)}]",
        f"{names.CELL}[0] += 1",
        f"{names.CELL}[1] += {text(node.length)}",
    ]


def _ask(node: statements.Ask) -> Lines:
    # A clone asks with two numbers, session and list; every other request with a single number.
    numbers = listed(node.numbers)
    return [f"{node.request} = {f'({numbers})' if len(node.numbers) > 1 else numbers}"]


def _ask_all(node: statements.AskAll) -> Lines:
    parts = []
    for request, is_used, of_state in node.requests:
        # Always all requests: the caller unpacks a tuple of fixed length.
        nothing = "None" if of_state else "()"
        parts += [request, names.values_of(request)] if is_used else ["None", nothing]

    asked = f"({''.join(part + ', ' for part in parts)})"
    condition = "" if node.test is None else f" if {text(node.test)} else None"
    return [f"{names.REQUESTS} = {asked}{condition}"]


def _return_ingress(node: statements.ReturnIngress) -> Lines:
    requests = names.REQUESTS if node.asks else "None"
    return [f"return {listed(node.outcome)}, {requests}, {_state(node.state)}"]


def _lookup(node: statements.Lookup) -> Lines:
    return list(_SEARCHES[node.kind](node.table, node.keys))


def _index(sources: Sequence[str]) -> str:
    # `Table` makes its index the same way: no tuple around a single value.
    return sources[0] if len(sources) == 1 else f"({', '.join(sources)})"


def _search_exact(number: int, keys: Sequence[Key]) -> Iterator[str]:
    yield f"{names.ENTRY} = {names.entries(number)}({_index([text(key.value) for key in keys])})"


def _search_prefixes(number: int, keys: Sequence[Key]) -> Iterator[str]:
    # Longest prefix first, one dict per length: as many lookups as there are lengths in use.
    masked = [
        f"{operand(key.value)} & {names.MASK}" if key.kind == "lpm" else text(key.value)
        for key in keys
    ]
    yield f"{names.ENTRY} = None"
    yield f"for {names.MASK}, {names.LEVEL} in {names.entries(number)}:"
    yield f" {names.ENTRY} = {names.LEVEL}.get({_index(masked)})"
    yield f" if {names.ENTRY} is not None:"
    yield "  break"


def _rows(number: int, keys: Sequence[Key]) -> Lines:
    # Ternary, lpm and exact fields stand side by side in one integer, compared at once under the
    # row's mask; a range has no mask and is compared by itself.
    ranges = [key.value for key in keys if key.kind == "range"]
    ends = "".join(f"{names.low(i)}, {names.high(i)}, " for i in range(len(ranges)))
    tests = [
        f"{names.KEY} & {names.MASK} == {names.VALUE}",
        *(
            f"{names.low(i)} <= {within(value, BITS)} <= {names.high(i)}"
            for i, value in enumerate(ranges)
        ),
    ]
    row = f"{names.MASK}, {names.VALUE}, {ends}{names.CANDIDATE}"
    return [
        f"for {row} in {names.entries(number)}:",
        f" if {' and '.join(tests)}:",
        f"  {names.ENTRY} = {names.CANDIDATE}",
        "  break",
    ]


def _start(keys: Sequence[Key]) -> Lines:
    parts = tuple((key.value, key.bits) for key in keys if key.kind != "range")
    joined = text(Joined(parts)) if len(parts) > 1 else text(parts[0][0]) if parts else "0"
    return [f"{names.ENTRY} = None", f"{names.KEY} = {joined}"]


def _search_rows(number: int, keys: Sequence[Key]) -> Iterator[str]:
    yield from _start(keys)
    yield from _rows(number, keys)


def _search_masked(number: int, keys: Sequence[Key]) -> Iterator[str]:
    """Search by masks where that pays, as `MaskedEntries` has decided; else row by row."""
    candidate = names.CANDIDATE
    level = f"{names.BOUND}, {names.MASK}, {names.LEVEL}"
    yield from _start(keys)
    yield f"if {names.levels(number)}:"
    yield f" {names.RANK} = {NO_RANK}"
    yield f" for {level} in {names.levels(number)}:"
    # Levels come in order of the best rank in them: once that is no better than the found entry, no
    # later level can win.
    yield f"  if {names.RANK} < {names.BOUND}:"
    yield "   break"
    yield f"  {candidate} = {names.LEVEL}({names.KEY} & {names.MASK})"
    yield f"  if {candidate} is not None and {candidate}[0] < {names.RANK}:"
    yield f"   {names.RANK}, {names.ENTRY} = {candidate}"
    yield "else:"
    yield from indented(_rows(number, keys))


_SEARCHES = {
    "exact": _search_exact,
    "lpm": _search_prefixes,
    "masked": _search_masked,
    "rows": _search_rows,
}
RULES: Mapping[type, Callable[[Any], Lines]] = {
    statements.Assign: lambda node: [f"{text(node.target)} = {text(node.value)}"],
    statements.Clear: lambda node: [f"{' = '.join(map(text, node.targets))} = 0"],
    statements.Move: lambda node: [f"{listed(node.targets)} = {listed(node.values)}"],
    statements.Change: lambda node: [f"{text(node.target)} {node.op}= {text(node.value)}"],
    statements.Halve: lambda node: [f"{text(node.target)} >>= {node.times}"],
    statements.Measure: lambda _: [f"{names.SIZE} = len({names.DATA})"],
    statements.Unpack: lambda node: [
        f"{_unpacked(node.targets)} {node.name}({names.DATA}, {text(node.offset)})"
    ],
    statements.TakeArguments: lambda node: [f"{_unpacked(node.targets)} {names.ENTRY}[1]"],
    statements.Restore: lambda node: [f"{_unpacked(node.targets)} {names.RESUME}[2]"],
    statements.TakeState: lambda node: [
        f"{', '.join([names.DATA, names.POSITION, *map(text, node.targets)])} = {names.STATE}"
    ],
    statements.If: _if,
    statements.Once: lambda node: ["while True:", *indented(lines(node.body))],
    statements.Repeat: lambda node: [
        f"for {names.REPEAT} in range({node.most}):",
        *indented(lines(node.body)),
    ],
    statements.Break: lambda _: ["break"],
    statements.Lookup: _lookup,
    statements.UseDefault: lambda node: [f"{names.ENTRY} = {names.default(node.table)}[0]"],
    statements.Resolve: lambda node: [
        f"{names.ENTRY} = {names.profile(node.profile)}.resolve({names.ENTRY}, {text(node.key)})"
    ],
    statements.Touch: lambda node: [f"{names.ENTRY}[2].last_hit_ps = {text(node.now)}"],
    statements.UseRecord: _use_record,
    statements.CountEntry: _count_entry,
    statements.CountCell: _count_cell,
    statements.Log: lambda node: [f"{names.LOG}({node.name}, {tuple_of(node.values)})"],
    statements.Trace: lambda node: [f"{names.TRACE}({node.name}, {tuple_of(node.values)})"],
    statements.Forget: lambda node: [f"{node.request} = None"],
    statements.Ask: _ask,
    statements.ForgetValues: lambda node: [
        f"{names.values_of(node.request)} = {'None' if node.of_state else '()'}"
    ],
    statements.KeepValues: lambda node: [
        f"{names.values_of(node.request)} = {tuple_of(node.values)}"
    ],
    statements.KeepState: lambda node: [f"{names.values_of(node.request)} = {_state(node.values)}"],
    statements.AskNothing: lambda _: [f"{names.REQUESTS} = None"],
    statements.AskAll: _ask_all,
    statements.MakeFrame: lambda node: [f'{names.FRAME} = b"".join({tuple_of(node.pieces)})'],
    statements.CutFrame: lambda node: [f"{names.FRAME} = {names.FRAME}[:{text(node.size)}]"],
    statements.ReturnIngress: _return_ingress,
    statements.ReturnEgress: lambda node: [
        f"return {'None' if node.is_dropped else names.FRAME}, {names.REQUESTS}"
    ],
}
