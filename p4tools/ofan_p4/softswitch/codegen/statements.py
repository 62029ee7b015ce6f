"""A program's statements, before they become text or machine code (see `nodes`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ofan_p4.softswitch.codegen.nodes import (
    Argument,
    Bytes,
    Expression,
    Local,
    Temporary,
    Variable,
)
from ofan_p4.softswitch.codegen.packet_nodes import Cell


class Statement:
    """Base of all statements."""

    __slots__ = ()


Statements: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """An assignment; a value for a number has the number's width."""

    target: Variable | Cell
    value: Expression


@dataclass(frozen=True, slots=True)
class Clear(Statement):
    """Some numbers and bytes become 0."""

    targets: tuple[Local | Bytes, ...]


@dataclass(frozen=True, slots=True)
class Move(Statement):
    """A simultaneous assignment: all values are read before the first is stored."""

    targets: tuple[Local | Bytes, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Change(Statement):
    """A value is added to a variable (`+`) or taken from it (`-`)."""

    op: str
    target: Local | Temporary
    value: Expression


@dataclass(frozen=True, slots=True)
class Halve(Statement):
    """A variable is halved so many times, downwards."""

    target: Temporary
    times: int


@dataclass(frozen=True, slots=True)
class Measure(Statement):
    """The bytes of the frame that came in are counted."""


@dataclass(frozen=True, slots=True)
class Unpack(Statement):
    """A struct is read out of the frame; its `unpack_from` is the constant `name`."""

    name: str
    format: str
    targets: tuple[Variable, ...]
    offset: Expression


@dataclass(frozen=True, slots=True)
class TakeArguments(Statement):
    """The parameters of an action become the arguments of the present entry."""

    targets: tuple[Temporary, ...]


@dataclass(frozen=True, slots=True)
class Restore(Statement):
    """Fields get the values that a packet brings along when it comes round again."""

    targets: tuple[Local | Bytes, ...]


@dataclass(frozen=True, slots=True)
class TakeState(Statement):
    """Egress begins with ingress's results: the frame, and these."""

    targets: tuple[Local | Bytes, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    """The first of (test, statements) arms with a test that holds, else `otherwise`."""

    arms: tuple[tuple[Expression, Statements], ...]
    otherwise: Statements = ()


@dataclass(frozen=True, slots=True)
class Once(Statement):
    """Statements that run once, and that a Break leaves; one stands at their end."""

    body: Statements


@dataclass(frozen=True, slots=True)
class Repeat(Statement):
    """Statements that run until a Break, at most so often."""

    most: int
    body: Statements


@dataclass(frozen=True, slots=True)
class Break(Statement):
    """The end of the innermost Once or Repeat."""


@dataclass(frozen=True, slots=True)
class Key:
    """One part of a table's key: a value of so many bits, matched by `kind`."""

    kind: str
    value: Expression
    bits: int


@dataclass(frozen=True, slots=True)
class Lookup(Statement):
    """The entry becomes the table's entry for a key, or none.

    `kind` is the kind of search: exact, lpm, masked or rows (`program.lookup_kind`).
    """

    table: int
    kind: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class UseDefault(Statement):
    """The entry becomes a table's default entry."""

    table: int


@dataclass(frozen=True, slots=True)
class Resolve(Statement):
    """The entry becomes the member that it names in an action profile, or a group's choice."""

    profile: int
    key: Expression


@dataclass(frozen=True, slots=True)
class Touch(Statement):
    """The entry notes when it was hit."""

    now: Argument


@dataclass(frozen=True, slots=True)
class UseRecord(Statement):
    """Count and meter in the present entry from here on, or in the default entry of a table."""

    table: int | None = None


@dataclass(frozen=True, slots=True)
class CountEntry(Statement):
    """That entry counts the packet."""

    length: Argument


@dataclass(frozen=True, slots=True)
class CountCell(Statement):
    """A cell of a counter array counts the packet."""

    array: int
    index: Expression
    length: Expression


@dataclass(frozen=True, slots=True)
class Log(Statement):
    """A log message with its values; its text is the constant `name`."""

    name: str
    text: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Trace(Statement):
    """A point of a traced program, the constant `name`, is reported with its values."""

    name: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Forget(Statement):
    """A request is not asked for."""

    request: str


@dataclass(frozen=True, slots=True)
class Ask(Statement):
    """A request, with one number or two."""

    request: str
    numbers: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ForgetValues(Statement):
    """No values go with a request yet; `of_state`: nor does the state of a clone."""

    request: str
    of_state: bool = False


@dataclass(frozen=True, slots=True)
class KeepValues(Statement):
    """The values of list `number` go with a request."""

    request: str
    number: int
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class KeepState(Statement):
    """A state goes with a clone: the frame, and these values of the variables that travel."""

    request: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AskNothing(Statement):
    """The packet asks the switch for nothing."""


@dataclass(frozen=True, slots=True)
class AskAll(Statement):
    """It asks for its requests, of which the program uses some: (request, is used, of state).

    `test`: only where that holds.
    """

    requests: tuple[tuple[str, bool, bool], ...]
    test: Expression | None = None


@dataclass(frozen=True, slots=True)
class MakeFrame(Statement):
    """The frame becomes these pieces one after the other."""

    pieces: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class CutFrame(Statement):
    """The frame keeps so many bytes."""

    size: Local


@dataclass(frozen=True, slots=True)
class ReturnIngress(Statement):
    """Ingress ends: egress_spec, multicast group, priority and growth; requests; the state."""

    outcome: tuple[Expression, ...]
    asks: bool
    state: tuple[Local | Bytes, ...]


@dataclass(frozen=True, slots=True)
class ReturnEgress(Statement):
    """Egress ends with the frame, or without."""

    is_dropped: bool
