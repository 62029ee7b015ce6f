"""Flow: steps one after the other, with branches and jumps, and the actions and tables it applies.

One lowering of statements produces it; three linkers of the back end turn it into the primitives of
an action, the states of a parser or the graph of a pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.midend.ir import Step, Value
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Test:
    condition: Value
    then: Flow
    otherwise: Flow
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """The end of a `Scope`, compared by identity."""

    name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Flow that `Leave` can leave before its end."""

    label: Label
    body: Flow


@dataclass(frozen=True, slots=True)
class Leave:
    label: Label


@dataclass(frozen=True, slots=True)
class Repeat:
    """Flow that begins again when it ends; only `Leave` and `Stop` get out of it."""

    body: Flow
    span: Span


@dataclass(frozen=True, slots=True)
class Stop:
    """`exit`: the pipeline ends here."""

    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """A table; either hit and miss or the actions decide how to go on, never both."""

    table: Table
    hit: Flow
    miss: Flow
    cases: tuple[tuple[tuple[Action, ...], Flow], ...]
    default: Flow
    by_action: bool
    span: Span


Item = Step | Test | Scope | Leave | Repeat | Stop | Apply
Flow = tuple[Item, ...]


def parts_of(item: Item) -> Flow:
    """Return the items directly inside an item."""
    match item:
        case Test(_, then, otherwise):
            return (*then, *otherwise)
        case Scope(_, body) | Repeat(body):
            return body
        case Apply(_, hit, miss, cases, default):
            return (*hit, *miss, *default, *(part for _, flow in cases for part in flow))
        case _:
            return ()


def leaves(item: Item, label: Label) -> bool:
    """Say whether an item contains a `Leave` of a label."""
    if isinstance(item, Leave):
        return item.label is label

    return any(leaves(part, label) for part in parts_of(item))


def close(label: Label, items: list[Item]) -> tuple[Item, ...]:
    """Return flow that ends at the label, without a scope if no step jumps from the middle."""
    if items and items[-1] == Leave(label):
        items = items[:-1]

    if any(leaves(item, label) for item in items):
        return (Scope(label, tuple(items)),)

    return tuple(items)


def tables_of(flow: Flow) -> list[Table]:
    """Return the tables that a flow applies, each once, in order."""
    tables: dict[str, Table] = {}
    for item in flow:
        if isinstance(item, Apply):
            tables.setdefault(item.table.name, item.table)

        for table in tables_of(parts_of(item)):
            tables.setdefault(table.name, table)

    return list(tables.values())


# The objects of a flow


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """An action with its flow.

    `source` is None for the synthetic ones, which the control plane does not see.
    """

    name: str
    params: tuple[tuple[str, int], ...]
    flow: Flow
    span: Span
    source: td.Action | None


@dataclass(frozen=True, slots=True)
class Key:
    """`operand` is a field or validity bit."""

    match_kind: str
    operand: Value
    name: str
    source: td.Key


@dataclass(frozen=True, slots=True)
class Match:
    """An entry's numbers for one key: value and mask, or low and high for a range."""

    value: int
    second: int


@dataclass(frozen=True, slots=True)
class Entry:
    matches: tuple[Match, ...]
    action: Action
    args: tuple[int, ...]
    priority: int
    own_priority: int | None
    span: Span


OBJECT_KINDS = (
    "counter",
    "direct_counter",
    "meter",
    "direct_meter",
    "register",
    "action_profile",
    "action_selector",
)


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """An extern instance: its control plane name, and its constructor arguments by name."""

    name: str
    source: td.Instance
    args: dict[str, int | str]

    @property
    def kind(self) -> str:
        assert not isinstance(self.source.type, td.Control | td.ParserBlock)
        return self.source.type.name

    @property
    def is_foreign(self) -> bool:
        """Whether v1model does not have this extern."""
        return self.kind not in OBJECT_KINDS


@dataclass(slots=True, eq=False)
class Table:
    """A table.

    `actions` are in the order of the program, `key_flow` computes keys that are expressions.
    """

    name: str
    source: td.Table
    keys: tuple[Key, ...]
    selectors: tuple[Value, ...]
    actions: tuple[Action, ...]
    default: Action
    default_args: tuple[int, ...]
    entries: tuple[Entry, ...]
    size: int
    implementation: Object | None
    counters: Object | None
    meters: Object | None
