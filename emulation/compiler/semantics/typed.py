"""The typed tree: what the checker makes of the syntax tree and what the mid-end walks.

Expressions know their type and the declaration that a name stands for. Declarations compare by
identity, so that the mid-end can bind one of them to several pieces of storage, once for every time
a control is inlined.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emulation.compiler.diagnostics import CompileWarning, Span
from emulation.compiler.semantics.types import (
    BlockDefinition,
    Enum,
    Extern,
    Parameter,
    Signature,
    Struct,
    TableResult,
    Type,
    Typed,
)
from emulation.compiler.syntax.nodes import Annotations

# Expressions


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Typed):
    """A value known now: an integer, a bool or a string, or a member of an enum or of `error`."""

    value: int | str


@dataclass(frozen=True, slots=True, eq=False)
class Ref(Typed):
    """The value of a parameter or variable, or an extern object that is passed on."""

    declaration: Parameter | Variable | Instance


@dataclass(frozen=True, slots=True, eq=False)
class Field(Typed):
    base: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Element(Typed):
    """An element of a stack or tuple."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False)
class StackMember(Typed):
    """`next`, `last` or `lastIndex` of a stack."""

    base: Expression
    which: str


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Typed):
    base: Expression
    high: int
    low: int


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Typed):
    op: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Typed):
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Ternary(Typed):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Typed):
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Typed):
    """A struct, header, tuple or record given item by item, in the order of the type's fields."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class InvalidHeader(Typed):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Masked(Typed):
    value: Expression
    mask: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Range(Typed):
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Everything(Typed):
    """`default` or `_` in a set."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetRef(Typed):
    declaration: ValueSet


Args = tuple["Expression | None", ...]
"""Arguments in the order of the parameters; None is a don't care for an out parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class ExternCall(Typed):
    """A call of an extern function, such as `hash(...)`."""

    function: Signature
    type_args: tuple[Type, ...]
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class MethodCall(Typed):
    """A call of a method of an instance, or of a parameter such as `packet_in`."""

    object: Instance | Parameter
    method: Signature
    type_args: tuple[Type, ...]
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCall(Typed):
    function: Function
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class ActionCall(Typed):
    action: Action
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class HeaderMethod(Typed):
    """`isValid`, `setValid`, `setInvalid`, or `push_front` and `pop_front` with their `amount`."""

    base: Expression
    name: str
    amount: int


@dataclass(frozen=True, slots=True, eq=False)
class TableApply(Typed):
    """`t.apply()`, of type TableResult, or its `.hit` or `.miss`, of type bool."""

    table: Table
    member: str


@dataclass(frozen=True, slots=True, eq=False)
class BlockApply(Typed):
    """`instance.apply(args)`.

    A parameter of the constructor stands for the instance that it is given.
    """

    instance: Instance | Parameter
    args: Args


Expression = (
    Literal
    | Ref
    | Field
    | Element
    | StackMember
    | Slice
    | Unary
    | Binary
    | Ternary
    | Cast
    | Aggregate
    | InvalidHeader
    | Masked
    | Range
    | Everything
    | ValueSetRef
    | ExternCall
    | MethodCall
    | FunctionCall
    | ActionCall
    | HeaderMethod
    | TableApply
    | BlockApply
)


def default_of(param: Parameter) -> Expression:
    """Return the value of a parameter for which no argument is given, so it must have one."""
    assert isinstance(param.default, Expression)
    return param.default


# Statements


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    span: Span
    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """`target op= ...`, evaluated once: `value` knows what the target holds as `old`."""

    span: Span
    target: Expression
    old: Variable
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """A call for its effects."""

    span: Span
    call: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Declare:
    span: Span
    variable: Variable


@dataclass(frozen=True, slots=True, eq=False)
class If:
    span: Span
    condition: Expression
    then: Body
    otherwise: Body


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    span: Span
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    span: Span
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Exit:
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ActionCase:
    """Labels are action names as the table lists them; `default` is the empty string."""

    labels: tuple[str, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class SwitchAction:
    """`switch (t.apply().action_run)`."""

    span: Span
    table: Table
    cases: tuple[ActionCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueCase:
    labels: tuple[Expression, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class SwitchValue:
    span: Span
    subject: Expression
    cases: tuple[ValueCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ForIn:
    """A loop whose variable takes one value after the other."""

    span: Span
    variable: Variable
    values: tuple[Expression, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A loop; the mid-end unrolls it where it can."""

    span: Span
    init: Body
    condition: Expression
    update: Body
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Continue:
    span: Span


Statement = (
    Assign
    | Update
    | Evaluate
    | Declare
    | If
    | Block
    | Return
    | Exit
    | SwitchAction
    | SwitchValue
    | For
    | ForIn
    | Break
    | Continue
)
Body = tuple[Statement, ...]


# Declarations


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    span: Span
    name: str
    type: Type
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class ValueSet:
    span: Span
    name: str
    type: Type
    size: Expression
    annotations: Annotations


@dataclass(slots=True, eq=False)
class Function:
    """Filled in two steps, so that the body can be checked after the signature is known."""

    span: Span
    name: str
    params: tuple[Parameter, ...]
    returns: Type
    body: Body = ()


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """`top_level` actions have no control in front of their name."""

    span: Span
    name: str
    params: tuple[Parameter, ...]
    body: Body
    annotations: Annotations
    top_level: bool

    @property
    def bound_params(self) -> tuple[Parameter, ...]:
        """Parameters with a direction: given where the action is listed."""
        return tuple(param for param in self.params if param.direction)

    @property
    def runtime_params(self) -> tuple[Parameter, ...]:
        """Parameters without direction: given by the control plane."""
        return tuple(param for param in self.params if not param.direction)


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """An extern object, control, parser or package made at compile time."""

    span: Span
    name: str
    type: InstanceType
    args: tuple[Expression | Instance, ...]
    annotations: Annotations
    anonymous: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    span: Span
    expression: Expression
    match_kind: str
    name: str
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ActionEntry:
    """An action in a table's list; `args` are those of its directional parameters."""

    span: Span
    action: Action
    args: Args
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ActionChoice:
    """An action with all its run-time arguments: a default action or the action of an entry."""

    span: Span
    entry: ActionEntry
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    span: Span
    keys: tuple[Expression, ...]
    choice: ActionChoice
    priority: Expression | None
    # What the program says, which P4Runtime shows; only where the largest wins, as it does there.
    own_priority: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table; the properties of v1model are resolved, `None` where absent."""

    span: Span
    name: str
    keys: tuple[Key, ...]
    actions: tuple[ActionEntry, ...]
    default: ActionChoice
    default_const: bool
    entries: tuple[Entry, ...]
    entries_const: bool
    size: Expression | None
    implementation: Instance | None
    counters: Instance | None
    meters: Instance | None
    support_timeout: bool
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    span: Span
    name: str
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Variable | Instance | Action | Table, ...]
    body: Body
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class SelectCase:
    span: Span
    keys: tuple[Expression, ...]
    state: str


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """Where to go on.

    `keys` is empty for a plain jump, whose target is then the state of the only case.
    """

    span: Span
    keys: tuple[Expression, ...]
    cases: tuple[SelectCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    span: Span
    name: str
    body: Body
    transition: Transition
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ParserBlock:
    span: Span
    name: str
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Variable | Instance | ValueSet, ...]
    states: tuple[State, ...]
    annotations: Annotations


InstanceType = Extern | Control | ParserBlock | BlockDefinition


Pair = tuple[str, Literal]
"""A key of a structured annotation, empty in a list, and its value."""


@dataclass(frozen=True)
class Program:
    """A checked program: `main`, and what the control plane can see without it.

    `spans` are those of struct declarations; `structured` holds what the structured annotations
    say, by their place in the text.
    """

    main: Instance
    errors: tuple[str, ...]
    instances: tuple[Instance, ...]
    headers: tuple[Struct, ...]
    enums: tuple[Enum, ...]
    spans: dict[Struct, Span] = field(default_factory=dict)
    structured: dict[int, tuple[Pair, ...]] = field(default_factory=dict)
    warnings: tuple[CompileWarning, ...] = ()


RESULT = TableResult()
