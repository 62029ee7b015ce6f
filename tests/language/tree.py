"""The judge's syntax tree of P4_16: as few kinds of node as the language needs.

It has nothing in common with the compiler's tree, on purpose: a rule that both would read wrongly
could not be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Types


@dataclass(frozen=True, slots=True)
class Bits:
    """`bit<W>`, or `int<W>` if signed."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Varbit:
    width: int


@dataclass(frozen=True, slots=True)
class Plain:
    """`bool`, `error`, `int`, `string`, `void` and `packet`."""

    name: str


@dataclass(frozen=True, slots=True)
class Enum:
    """`values` are the numbers of the members, if the enum has an underlying type."""

    name: str
    members: tuple[str, ...]
    below: Bits | None = None
    values: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """`kind` is struct, header or header_union."""

    kind: str
    name: str
    fields: tuple[tuple[str, Type], ...]
    lists: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Stack:
    element: Struct
    size: int


@dataclass(frozen=True, slots=True)
class Tuple:
    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Extern:
    """An extern object's type, as `register<bit<8>>`."""

    name: str
    args: tuple[Type, ...] = ()


Type = Bits | Varbit | Plain | Enum | Struct | Stack | Tuple | Extern

# Expressions


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    width: int | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class OfType:
    """`type.name`, a member of an enum or an error."""

    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Member:
    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Slice:
    base: Expression
    high: int
    low: int


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    type: Type
    operand: Expression


@dataclass(frozen=True, slots=True)
class Named:
    """`name = value`, an argument by name."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Call:
    target: Expression
    types: tuple[Type, ...]
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """`{a, b}`, or `{x = a, y = b}` with names."""

    items: tuple[Expression, ...]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Anything:
    """`_` and `default`."""


@dataclass(frozen=True, slots=True)
class Masked:
    value: Expression
    mask: Expression


@dataclass(frozen=True, slots=True)
class Between:
    low: Expression
    high: Expression


Expression = (
    Number
    | Truth
    | Text
    | Name
    | OfType
    | Member
    | Index
    | Slice
    | Unary
    | Binary
    | Choice
    | Cast
    | Call
    | Named
    | Items
    | Anything
    | Masked
    | Between
)

# Statements


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`, or `target op= value`."""

    target: Expression
    op: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Do:
    call: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    type: Type
    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(frozen=True, slots=True)
class Block:
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """A case without a body falls through to the next."""

    subject: Expression
    cases: tuple[tuple[Expression, Block | None], ...]


@dataclass(frozen=True, slots=True)
class For:
    init: tuple[Statement, ...]
    condition: Expression
    update: tuple[Statement, ...]
    body: Statement


@dataclass(frozen=True, slots=True)
class ForIn:
    type: Type
    name: str
    values: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`exit`, `break` or `continue`."""

    kind: str


Statement = Assign | Do | Declare | If | Block | Switch | For | ForIn | Return | Jump

# Declarations


@dataclass(frozen=True, slots=True)
class Param:
    direction: str
    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function, or an action if it returns nothing and `is_action`."""

    name: str
    params: tuple[Param, ...]
    body: Block
    is_action: bool


@dataclass(frozen=True, slots=True)
class Instance:
    """An extern object, or an instance of a control or parser of that name."""

    type: Type | str
    args: tuple[Expression, ...]
    name: str


@dataclass(frozen=True, slots=True)
class ActionCall:
    name: str
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ConstEntry:
    keys: tuple[Expression, ...]
    action: ActionCall


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    keys: tuple[tuple[Expression, str], ...]
    actions: tuple[str, ...]
    default: ActionCall
    entries: tuple[ConstEntry, ...]


@dataclass(frozen=True, slots=True)
class State:
    """Without keys, the only case is where it goes."""

    name: str
    body: tuple[Statement, ...]
    keys: tuple[Expression, ...]
    cases: tuple[tuple[tuple[Expression, ...], str], ...]


Local = Declare | Instance | Function | Table


@dataclass(frozen=True, slots=True)
class Control:
    name: str
    params: tuple[Param, ...]
    locals: tuple[Local, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Parser:
    name: str
    params: tuple[Param, ...]
    locals: tuple[Local, ...]
    states: tuple[State, ...]


@dataclass(slots=True)
class Program:
    types: dict[str, Type]
    errors: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    blocks: dict[str, Control | Parser] = field(default_factory=dict)
    constants: list[Declare] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    main: tuple[str, ...] = ()
