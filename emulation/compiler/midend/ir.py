"""The intermediate representation: operands, steps, flow, and the objects of a v1model switch.

It has what BMv2 has: fields of named headers, no local variables, no calls. One lowering of
statements produces `Flow`; three linkers of the back end turn it into the primitives of an action,
the states of a parser or the graph of a pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emulation.compiler.diagnostics import Span
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics.types import BOOL, INDEX, Stack, Struct, Type

# Operands: values


@dataclass(frozen=True, slots=True)
class Num:
    """A number; its type is INT where no width is known."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`."""

    value: bool
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a header or metadata instance; errors and plain enums are stored as bit<32>."""

    header: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class RunTime:
    """The action parameter with this index."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Valid:
    """Whether a header, union or element of a stack is valid."""

    of: HeaderAt | UnionAt | ElementAt
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class Compute:
    """`left op right`, exact; `left` is None for an unary operator.

    Results are in the range of `type`.
    """

    op: str
    left: Value | None
    right: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Choose:
    condition: Value
    then: Value
    otherwise: Value
    type: Type


@dataclass(frozen=True, slots=True)
class LastIndex:
    stack: str
    type: Type = INDEX


@dataclass(frozen=True, slots=True)
class LastField:
    """A field of the last valid element of a stack."""

    stack: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class ElementField:
    """A field of an element of a stack of so many, whose index is computed.

    `offset` is the field's place in the header.
    """

    stack: str
    size: int
    index: Value
    offset: int
    type: Type


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Bits of the packet that are not yet parsed."""

    offset: int
    width: int
    type: Type


@dataclass(frozen=True, slots=True)
class Widened:
    """A stored value as one of a wider type: BMv2 sees the same number, lists need a temporary."""

    value: FieldRef | LastField | ElementField
    type: Type


Value = (
    Num
    | Flag
    | FieldRef
    | RunTime
    | Valid
    | Compute
    | Choose
    | LastIndex
    | LastField
    | ElementField
    | Lookahead
    | Widened
)

# Operands: places


@dataclass(frozen=True, slots=True)
class HeaderAt:
    name: str
    type: Struct


@dataclass(frozen=True, slots=True)
class UnionAt:
    name: str
    type: Struct
    members: tuple[HeaderAt, ...]


@dataclass(frozen=True, slots=True)
class StackAt:
    name: str
    type: Stack
    elements: tuple[HeaderAt | UnionAt, ...]


@dataclass(frozen=True, slots=True)
class ElementAt:
    """The element of a stack whose index is computed."""

    stack: StackAt
    index: Value

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class NextAt:
    """The element of a stack that is extracted next."""

    stack: StackAt

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class NextMember:
    """A member of the union that is extracted next."""

    stack: StackAt
    member: str
    type: Struct


@dataclass(frozen=True, slots=True)
class LastAt:
    """The last valid element of a stack."""

    stack: StackAt

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class StructAt:
    """A struct or tuple, as the operands of its fields in order."""

    type: Type
    names: tuple[str, ...]
    items: tuple[Operand, ...]

    def item(self, name: str) -> Operand:
        return self.items[self.names.index(name)]


@dataclass(frozen=True, slots=True)
class Invalid:
    """An invalid header that is stored nowhere."""

    type: Type


Place = HeaderAt | UnionAt | StackAt | ElementAt | NextAt | NextMember | LastAt | StructAt | Invalid
Operand = Value | Place


# Steps


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that names an object: `kind` is the type that the JSON gives it."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Vector:
    items: tuple[Value, ...]


Argument = Operand | Named | Text | Vector


@dataclass(frozen=True, slots=True)
class Assign:
    target: FieldRef | ElementField
    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive of the target with its arguments."""

    name: str
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Extract:
    """`length`, in bits, is given when the header has a varbit field."""

    target: HeaderAt | NextAt | NextMember
    length: Value | None
    span: Span


@dataclass(frozen=True, slots=True)
class Advance:
    bits: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Verify:
    condition: Value
    error: Value
    span: Span


Step = Assign | Primitive | Extract | Advance | Verify


# Flow


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
    """Return flow whose label ends here, without a scope where nothing jumps from the middle."""
    if items and items[-1] == Leave(label):
        items = items[:-1]

    if any(leaves(item, label) for item in items):
        return (Scope(label, tuple(items)),)

    return tuple(items)


# Objects


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """An action with its flow.

    `source` is None for the synthetic ones, which the control plane does not see.
    """

    name: str
    params: tuple[tuple[str, int], ...]
    flow: Flow
    span: Span
    source: t.Action | None


@dataclass(frozen=True, slots=True)
class Key:
    """`operand` is a field or validity bit."""

    match_kind: str
    operand: Value
    name: str
    source: t.Key


@dataclass(frozen=True, slots=True)
class Match:
    """What an entry gives for one key, as numbers: value and mask, or low and high for a range."""

    value: int
    other: int


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
    source: t.Instance
    args: dict[str, int | str]

    @property
    def kind(self) -> str:
        assert not isinstance(self.source.type, t.Control | t.ParserBlock)
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
    source: t.Table
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


@dataclass(frozen=True, slots=True)
class ValueSet:
    name: str
    width: int
    size: int
    source: t.ValueSet


@dataclass(frozen=True, slots=True)
class Case:
    """A select case: value and mask per key, or the name of a value set.

    `state` None ends the parser.
    """

    matches: tuple[Match, ...]
    value_set: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class State:
    """A parser state; without keys, the only case is the next state."""

    name: str
    flow: Flow
    keys: tuple[Value, ...]
    cases: tuple[Case, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Checksum:
    """`verify` or, if not, update."""

    verify: bool
    condition: Value
    inputs: tuple[Value, ...]
    target: FieldRef
    algorithm: str
    payload: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Digest:
    """What the control plane is told, by the name of its type."""

    name: str
    type: Type
    fields: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Calculation:
    """The input of a hash."""

    name: str
    algorithm: str
    inputs: tuple[Value, ...]
    span: Span


@dataclass(slots=True)
class HeaderInstance:
    name: str
    type: Struct
    metadata: bool = False


@dataclass(slots=True)
class Layout:
    """All storage of a program: scalars in one metadata header, headers, stacks and unions."""

    scalars: dict[str, Type] = field(default_factory=dict)
    headers: dict[str, HeaderInstance] = field(default_factory=dict)
    stacks: dict[str, StackAt] = field(default_factory=dict)
    unions: dict[str, UnionAt] = field(default_factory=dict)
    # The next number to try for a name that is taken.
    numbers: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Switch:
    """A whole program, ready for the back end."""

    program: t.Program
    layout: Layout
    states: list[State] = field(default_factory=list)
    value_sets: list[ValueSet] = field(default_factory=list)
    ingress: Flow = ()
    egress: Flow = ()
    ingress_span: Span | None = None
    egress_span: Span | None = None
    emits: list[HeaderAt] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    digests: list[Digest] = field(default_factory=list)
    field_lists: dict[int, list[FieldRef]] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)
    meter_targets: dict[str, FieldRef] = field(default_factory=dict)
    called: list[Action] = field(default_factory=list)
    # Whether externs that are not the target's are left to it all the same.
    emit_externs: bool = False
