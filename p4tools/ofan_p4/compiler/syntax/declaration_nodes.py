"""Syntax tree of P4_16: declarations, from parameters to parsers and controls."""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.syntax.nodes import (
    Annotations,
    Argument,
    Block,
    Constant,
    Expression,
    Name,
    Node,
    Statement,
    TypeExpression,
    Variable,
)
from ofan_p4.diagnostics import Span


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
