"""Syntax tree of P4_16: frozen, each node with its span.

Names are not resolved and nothing has a type yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulation.compiler.diagnostics import Span
from emulation.compiler.syntax.lexer import Token


@dataclass(frozen=True, slots=True)
class Node:
    span: Span


@dataclass(frozen=True, slots=True)
class Annotation(Node):
    """`@name(tokens)` or, structured, `@name[tokens]`."""

    name: str
    tokens: tuple[Token, ...]
    structured: bool


# In the order of the program, which P4Info keeps.
Annotations = tuple[Annotation, ...]


# Types


@dataclass(frozen=True, slots=True)
class BaseType(Node):
    """`bool`, `error`, `string`, `void`, `int` without width, `_`, `match_kind`."""

    name: str


@dataclass(frozen=True, slots=True)
class SizedType(Node):
    """`bit<width>`, `int<width>` or `varbit<width>`."""

    name: str
    width: Expression


@dataclass(frozen=True, slots=True)
class NamedType(Node):
    name: str
    args: tuple[TypeExpression, ...]


@dataclass(frozen=True, slots=True)
class StackTypeExpression(Node):
    element: TypeExpression
    size: Expression


@dataclass(frozen=True, slots=True)
class TupleTypeExpression(Node):
    elements: tuple[TypeExpression, ...]


TypeExpression = BaseType | SizedType | NamedType | StackTypeExpression | TupleTypeExpression


# Expressions


@dataclass(frozen=True, slots=True)
class IntLiteral(Node):
    value: int
    width: int | None
    signed: bool


@dataclass(frozen=True, slots=True)
class BoolLiteral(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class StringLiteral(Node):
    value: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name; `absolute` when written with a leading dot."""

    name: str
    absolute: bool


@dataclass(frozen=True, slots=True)
class Member(Node):
    base: Expression
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True)
class Index(Node):
    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Slice(Node):
    base: Expression
    high: Expression
    low: Expression


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """A call's argument, named (`name = value`) or not; value None is the don't care `_`."""

    name: str | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: Expression
    type_args: tuple[TypeExpression, ...]
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Ternary(Node):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Cast(Node):
    type: TypeExpression
    operand: Expression


@dataclass(frozen=True, slots=True)
class ListExpression(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class StructExpression(Node):
    """`{name = value, ...}`."""

    fields: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class DefaultExpression(Node):
    """`default`, `_` or `...`: anything, or nothing in particular."""

    spelling: str


@dataclass(frozen=True, slots=True)
class InvalidExpression(Node):
    """`{#}`: an invalid header."""


Expression = (
    IntLiteral
    | BoolLiteral
    | StringLiteral
    | Name
    | Member
    | Index
    | Slice
    | Call
    | Unary
    | Binary
    | Ternary
    | Cast
    | ListExpression
    | StructExpression
    | DefaultExpression
    | InvalidExpression
)


# Statements


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`target op value`; op is `=` or a compound such as `+=`."""

    target: Expression
    op: str
    value: Expression


@dataclass(frozen=True, slots=True)
class CallStatement(Node):
    call: Call


@dataclass(frozen=True, slots=True)
class If(Node):
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(frozen=True, slots=True)
class Block(Node):
    annotations: Annotations
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Return(Node):
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Exit(Node):
    pass


@dataclass(frozen=True, slots=True)
class Break(Node):
    pass


@dataclass(frozen=True, slots=True)
class Continue(Node):
    pass


@dataclass(frozen=True, slots=True)
class Empty(Node):
    pass


@dataclass(frozen=True, slots=True)
class SwitchCase(Node):
    """One or more labels that fall through to one body."""

    labels: tuple[Expression, ...]
    body: Block | None


@dataclass(frozen=True, slots=True)
class Switch(Node):
    subject: Expression
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True)
class ForIn(Node):
    """`for (type name in collection) body`; a range is a Binary `..`."""

    type: TypeExpression
    name: str
    name_span: Span
    collection: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class For(Node):
    init: tuple[Statement, ...]
    condition: Expression
    update: tuple[Statement, ...]
    body: Statement


# Declarations


@dataclass(frozen=True, slots=True)
class Constant(Node):
    annotations: Annotations
    type: TypeExpression
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Variable(Node):
    annotations: Annotations
    type: TypeExpression
    name: str
    value: Expression | None
    name_span: Span


Statement = (
    Assign
    | CallStatement
    | If
    | Block
    | Return
    | Exit
    | Break
    | Continue
    | Empty
    | Switch
    | For
    | ForIn
    | Constant
    | Variable
)


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`direction` is `in`, `out`, `inout` or empty."""

    annotations: Annotations
    direction: str
    type: TypeExpression
    name: str
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Typedef(Node):
    """`typedef type name;` or, with `distinct`, `type type name;`."""

    annotations: Annotations
    type: TypeExpression
    name: str
    distinct: bool


@dataclass(frozen=True, slots=True)
class Field(Node):
    annotations: Annotations
    type: TypeExpression
    name: str


@dataclass(frozen=True, slots=True)
class Struct(Node):
    """`kind` is `struct`, `header` or `header_union`."""

    annotations: Annotations
    kind: str
    name: str
    type_params: tuple[str, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class EnumMember(Node):
    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class EnumDeclaration(Node):
    annotations: Annotations
    name: str
    underlying: TypeExpression | None
    members: tuple[EnumMember, ...]


@dataclass(frozen=True, slots=True)
class NameList(Node):
    """`error {...}` or `match_kind {...}`."""

    kind: str
    names: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class Method(Node):
    """A function signature; `returns` is None for a constructor."""

    annotations: Annotations
    returns: TypeExpression | None
    name: str
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Extern(Node):
    annotations: Annotations
    name: str
    type_params: tuple[str, ...]
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class ExternFunction(Node):
    method: Method

    @property
    def name(self) -> str:
        return self.method.name


@dataclass(frozen=True, slots=True)
class Function(Node):
    method: Method
    body: Block

    @property
    def name(self) -> str:
        return self.method.name


@dataclass(frozen=True, slots=True)
class Action(Node):
    annotations: Annotations
    name: str
    params: tuple[Parameter, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class BlockType(Node):
    """The type of a parser, control or package, without a body."""

    annotations: Annotations
    kind: str
    name: str
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Instance(Node):
    annotations: Annotations
    type: TypeExpression
    args: tuple[Argument, ...]
    name: str


@dataclass(frozen=True, slots=True)
class ValueSet(Node):
    annotations: Annotations
    type: TypeExpression
    size: Expression
    name: str


@dataclass(frozen=True, slots=True)
class KeyElement(Node):
    annotations: Annotations
    expression: Expression
    match_kind: str
    match_span: Span


@dataclass(frozen=True, slots=True)
class ActionReference(Node):
    annotations: Annotations
    name: Name
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    annotations: Annotations
    const: bool
    priority: Expression | None
    keys: tuple[Expression, ...]
    action: ActionReference


@dataclass(frozen=True, slots=True)
class Property(Node):
    annotations: Annotations
    const: bool
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Entries(Node):
    const: bool
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Table(Node):
    annotations: Annotations
    name: str
    name_span: Span
    key: tuple[KeyElement, ...]
    actions: tuple[ActionReference, ...]
    entries: Entries | None
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class SelectCase(Node):
    keys: tuple[Expression, ...]
    state: str
    state_span: Span


@dataclass(frozen=True, slots=True)
class Transition(Node):
    """A jump to `state`, or a select over `keys` when `cases` is not None."""

    state: str
    keys: tuple[Expression, ...]
    cases: tuple[SelectCase, ...] | None


@dataclass(frozen=True, slots=True)
class State(Node):
    annotations: Annotations
    name: str
    statements: tuple[Statement, ...]
    transition: Transition | None


@dataclass(frozen=True, slots=True)
class Parser(Node):
    annotations: Annotations
    name: str
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Control(Node):
    annotations: Annotations
    name: str
    name_span: Span
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    body: Block


Declaration = (
    Constant
    | Variable
    | Typedef
    | Struct
    | EnumDeclaration
    | NameList
    | Extern
    | ExternFunction
    | Function
    | Action
    | BlockType
    | Instance
    | ValueSet
    | Table
    | Parser
    | Control
)


@dataclass(frozen=True, slots=True)
class Program(Node):
    """A whole program; `annotations` are all of it, wherever they stand."""

    declarations: tuple[Declaration, ...]
    annotations: Annotations = ()
