"""Syntax tree of P4_16: types, expressions and statements; frozen, each node with its span.

Names are not resolved and nothing has a type yet. Declarations stand in `declaration_nodes`, but
for constants and variables, which are statements as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.syntax.lexer import Token
from ofan_p4.diagnostics import Span


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
