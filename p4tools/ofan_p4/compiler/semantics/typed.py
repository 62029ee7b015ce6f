"""The typed tree: the checker's result and the mid-end's input.

Expressions know their type and the declaration that a name stands for (`typed_declarations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ofan_p4.compiler.semantics.typed_declarations import (
    Action,
    Args,
    Body,
    Function,
    Instance,
    Statement,
    Table,
    ValueSet,
    Variable,
)
from ofan_p4.compiler.semantics.types import (
    Enum,
    Expression,
    Parameter,
    Signature,
    Struct,
    TableResult,
    Type,
)
from ofan_p4.diagnostics import CompileWarning, Span

# Expressions


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A value known now: an integer, a bool or a string, or a member of an enum or of `error`."""

    value: int | str


@dataclass(frozen=True, slots=True, eq=False)
class Ref(Expression):
    """The value of a parameter or variable, or an extern object that is passed on."""

    declaration: Parameter | Variable | Instance


@dataclass(frozen=True, slots=True, eq=False)
class Field(Expression):
    base: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Element(Expression):
    """An element of a stack or tuple."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True, eq=False)
class StackMember(Expression):
    """`next`, `last` or `lastIndex` of a stack."""

    base: Expression
    which: str


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expression):
    base: Expression
    high: int
    low: int


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expression):
    op: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expression):
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Ternary(Expression):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Expression):
    """A struct, header, tuple or record given item by item, in the order of the type's fields."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class InvalidHeader(Expression):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Masked(Expression):
    value: Expression
    mask: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Range(Expression):
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Everything(Expression):
    """`default` or `_` in a set."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetRef(Expression):
    declaration: ValueSet


@dataclass(frozen=True, slots=True, eq=False)
class ExternCall(Expression):
    """A call of an extern function, such as `hash(...)`."""

    function: Signature
    type_args: tuple[Type, ...]
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class MethodCall(Expression):
    """A call of a method of an instance, or of a parameter such as `packet_in`."""

    object: Instance | Parameter
    method: Signature
    type_args: tuple[Type, ...]
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCall(Expression):
    function: Function
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class ActionCall(Expression):
    action: Action
    args: Args


@dataclass(frozen=True, slots=True, eq=False)
class HeaderMethod(Expression):
    """`isValid`, `setValid`, `setInvalid`, or `push_front` and `pop_front` with their `amount`."""

    base: Expression
    name: str
    amount: int


@dataclass(frozen=True, slots=True, eq=False)
class TableApply(Expression):
    """`t.apply()`, of type TableResult, or its `.hit` or `.miss`, of type bool."""

    table: Table
    member: str


@dataclass(frozen=True, slots=True, eq=False)
class BlockApply(Expression):
    """`instance.apply(args)`.

    A parameter of the constructor stands for the instance that it is given.
    """

    instance: Instance | Parameter
    args: Args


# Statements


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Statement):
    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Update(Statement):
    """`target op= ...`, evaluated once: `value` reads the target's old value as `old`."""

    target: Expression
    old: Variable
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Statement):
    """A call for its effects."""

    call: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Declare(Statement):
    variable: Variable


@dataclass(frozen=True, slots=True, eq=False)
class If(Statement):
    condition: Expression
    then: Body
    otherwise: Body


@dataclass(frozen=True, slots=True, eq=False)
class Block(Statement):
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Return(Statement):
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Exit(Statement):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class ActionCase:
    """Labels are action names as the table lists them; `default` is the empty string."""

    labels: tuple[str, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class SwitchAction(Statement):
    """`switch (t.apply().action_run)`."""

    table: Table
    cases: tuple[ActionCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueCase:
    labels: tuple[Expression, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class SwitchValue(Statement):
    subject: Expression
    cases: tuple[ValueCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ForIn(Statement):
    """A loop with a variable that takes one value after the other."""

    variable: Variable
    values: tuple[Expression, ...]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class For(Statement):
    """A loop; the mid-end unrolls it where it can."""

    init: Body
    condition: Expression
    update: Body
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Break(Statement):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Continue(Statement):
    pass


Pair = tuple[str, Literal]
"""A key of a structured annotation, empty in a list, and its value."""


@dataclass(frozen=True)
class Program:
    """A checked program: `main`, and the objects that the control plane can see without it.

    `spans` are those of struct declarations; `structured` holds the pairs of structured
    annotations, by their place in the text.
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
